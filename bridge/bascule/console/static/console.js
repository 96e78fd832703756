// Live news for the pages. Everything works without this file; it only says that something has changed.
"use strict";

(() => {
  const announcer = document.getElementById("announcer");
  const RETRY_MS = 5000;

  function announce(text) {
    announcer.textContent = text;
  }

  function listen(url, name, take) {
    let source = null;
    let stopped = false;

    function open() {
      source = new EventSource(url);
      source.addEventListener(name, (event) => {
        if (take(JSON.parse(event.data)) === "done") {
          stopped = true;
          source.close();
        }
      });
      source.onerror = () => {
        // A closed source (refused, logged out, restarting) is not opened again by the browser itself.
        if (source.readyState === EventSource.CLOSED && !stopped) setTimeout(open, RETRY_MS);
      };
    }

    // A page that nobody looks at keeps no connection.
    document.addEventListener("visibilitychange", () => {
      if (document.hidden) source.close();
      else if (!stopped && source.readyState === EventSource.CLOSED) open();
    });
    window.addEventListener("pagehide", () => source.close());
    open();
  }

  function setCount(count) {
    const badge = document.querySelector("[data-pending]");
    const link = document.querySelector('nav a[href="/"]');
    if (badge) badge.textContent = count || "";
    else if (count && link) {
      const made = document.createElement("span");
      made.className = "count";
      made.dataset.pending = "";
      made.textContent = count;
      link.append(" ", made);
    }
    if (document.getElementById("fresh")) {
      const bare = document.title.replace(/^\(\d+\) /, "");
      document.title = count ? `(${count}) ${bare}` : bare;
    }
  }

  function followInbox(fresh) {
    const query = new URLSearchParams(location.search);
    query.delete("cursor");
    for (const [name, value] of [...query]) if (!value) query.delete(name);
    query.set("since", fresh.dataset.since);
    let known = 0;
    listen(`/live/inbox?${query}`, "inbox", (news) => {
      setCount(news.pending);
      if (news.fresh) {
        fresh.hidden = false;
        const link = fresh.querySelector("a");
        link.textContent = `${news.fresh} new`;
        link.href = location.href;
        if (news.fresh > known) announce(`${news.fresh} new calls wait`);
      }
      known = news.fresh;
      // Rows never move and never go: one that was decided elsewhere stays in its place and says so.
      for (const id of news.gone) {
        const row = document.getElementById(id);
        if (row && !row.classList.contains("gone")) {
          row.classList.add("gone");
          const facts = row.querySelector(".facts");
          const mark = document.createElement("span");
          mark.className = "state off";
          mark.textContent = "no longer waits";
          facts.prepend(mark, " ");
        }
      }
    });
  }

  async function swap(part) {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) return;
    const read = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = read.getElementById(part.id);
    if (!fresh) return;
    const open = new Set([...part.querySelectorAll("details")].map((each, index) => (each.open ? index : -1)));
    [...fresh.querySelectorAll("details")].forEach((each, index) => {
      if (open.has(index)) each.open = true;
    });
    part.replaceChildren(...fresh.childNodes);
    document.title = read.title;
  }

  function followPart(part) {
    listen(part.dataset.live, part.dataset.event, (news) => {
      const changed = part.querySelector("[data-changed]");
      if (changed) {
        changed.hidden = false;
        announce("This call has changed.");
        return "done";
      }
      if ("swap" in part.dataset) {
        // Not while somebody reads with the keyboard or selects inside it.
        if (!part.contains(document.activeElement) && !String(getSelection())) swap(part);
        announce(`The run is ${news.status}.`);
      }
      return news.status === "running" || news.status === "suspended" ? "" : "done";
    });
  }

  const fresh = document.getElementById("fresh");
  if (fresh) followInbox(fresh);
  for (const part of document.querySelectorAll("[data-live]")) followPart(part);

  // One press, one decision: a form that is on its way is not sent again.
  for (const form of document.querySelectorAll('form[method="post"]')) {
    form.addEventListener("submit", (event) => {
      if (event.submitter && event.submitter.formMethod === "dialog") return;
      if (form.dataset.sent) event.preventDefault();
      form.dataset.sent = "yes";
    });
  }
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form")) delete form.dataset.sent;
  });
})();

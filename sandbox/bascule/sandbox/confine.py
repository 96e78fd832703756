"""Builds walls around this very process, then becomes the guest. Run as a program by ``ProcessBackend``.

Standard library only, one file: it runs without site-packages and knows nothing but its one argument. Doing
this after exec keeps Python code out of the dangerous moment between fork and exec in a host with threads.

Three processes, so that the guest is alone in its own: this one waits outside the new namespaces; its child
is process 1 inside, reaps and waits; the child of that becomes the guest. Every wall that was asked for
stands or nothing runs; a trial says which cannot stand here.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import resource
import signal
import struct
import sys
from collections.abc import Callable
from typing import Any, NoReturn

NOBODY = 65534

_NUMBERS = {"x86_64": {"pivot_root": 155, "capset": 126}, "aarch64": {"pivot_root": 41, "capset": 91}}
_OPEN_TREE, _MOVE_MOUNT = 428, 429
_MOUNT_SETATTR, _LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 442, 444, 445, 446
"""The newer calls have one number on every processor."""

_NEWNS, _NEWCGROUP, _NEWUTS = 0x00020000, 0x02000000, 0x04000000
_NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x08000000, 0x10000000, 0x20000000, 0x40000000

_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_NOEXEC = 1, 2, 4, 8
_MS_BIND, _MS_REC, _MS_SLAVE = 4096, 16384, 1 << 19
_MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH, _MOVE_FROM_EMPTY_PATH = -100, 0x8000, 0x1000, 4

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 22, 24
_PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 28, 38, 47
_NO_ROOT_LOCKED = 0b11 | 0b1100 | 0b11_000000
"""SECBIT_NOROOT, SECBIT_NO_SETUID_FIXUP and SECBIT_NO_CAP_AMBIENT_RAISE, each with its lock."""

_READ, _READ_FOLDER, _EXECUTE, _WRITE = 1 << 2, 1 << 3, 1 << 0, 1 << 1
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All that Landlock can refuse about files, by the version of its interface that brought the last of them."""

_SIGNAL_BASE = 128
_LAST_FD = 4096

_libc = ctypes.CDLL(None, use_errno=True)


class Walls:
    """The walls that are asked for, and what became of them.

    Args:
        settings: from ``process_walls.settings``; the host's, trusted.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._trial: bool = settings["trial"]
        self.missing: dict[str, str] = {}
        self._moved = False
        self._as_root = os.geteuid() == 0
        self._machine = _NUMBERS.get(os.uname().machine, {})

    def attempt(self, wall: str, build: Callable[[], None]) -> bool:
        """Build a wall that was asked for; return whether it stands. Without it nothing runs, but a trial."""
        if wall not in self._settings["walls"]:
            return False
        try:
            build()
        except (OSError, KeyError) as error:
            why = getattr(error, "strerror", None) or "not known on this processor"
            if not self._trial:
                stop(f"{wall}: {why}")
            self.missing[wall] = why
            return False
        return True

    def surround(self) -> NoReturn:
        """Build all walls and become the guest."""
        follow_parent()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")  # a host short of memory kills guests first
        if self._as_root:
            with contextlib.suppress(OSError):
                os.setgroups([])
        nobody = self.attempt("user", self._leave_users)
        self.attempt("network", lambda: unshare(_NEWNET))
        self.attempt("ipc", lambda: unshare(_NEWIPC | _NEWUTS | _NEWCGROUP))
        mounts = self.attempt("files", lambda: unshare(_NEWNS))
        if self.attempt("processes", lambda: unshare(_NEWPID)):
            self._fork(lambda: self._drop_privileges(nobody=nobody))
        if mounts:
            self._moved = self.attempt("files", lambda: self._build_root(nobody=nobody))
        self._drop_privileges(nobody=nobody)
        if os.getpid() == 1:
            self._fork(lambda: None)
        self.attempt("landlock", self._restrict_files)
        self._limit(processes=nobody)
        self.attempt("seccomp", self._filter_calls)
        argv: list[str] = self._settings["argv"]
        os.execve(argv[0], [*argv, json.dumps(self.missing)] if self._trial else argv, dict(os.environ))

    def _fork(self, before_waiting: Callable[[], None]) -> None:
        """Go on in a child; this process waits for it, ends as it did, and holds nothing meanwhile."""
        child = os.fork()
        if child == 0:
            follow_parent()
            return
        before_waiting()
        os.closerange(0, _LAST_FD)  # the guest's streams must end when the guest does
        while True:
            pid, status = os.wait()
            if pid == child:
                code = os.waitstatus_to_exitcode(status)
                os._exit(code if code >= 0 else _SIGNAL_BASE - code)

    def _leave_users(self) -> None:
        """Enter a user namespace in which there is nobody but nobody; a helper outside writes its map."""
        uid, gid, target = os.geteuid(), os.getegid(), os.getpid()
        outside = (NOBODY, NOBODY) if self._as_root else (uid, gid)
        waiting, ready = os.pipe()
        helper = os.fork()
        if helper == 0:
            os.close(ready)
            failed = not os.read(waiting, 1)
            try:
                for name, identity in () if failed else (("uid_map", outside[0]), ("gid_map", outside[1])):
                    if name == "gid_map" and not self._as_root:
                        _put(f"/proc/{target}/setgroups", "deny")
                    _put(f"/proc/{target}/{name}", f"{NOBODY} {identity} 1")
            except OSError as error:
                os._exit(error.errno or 1)
            os._exit(0)
        os.close(waiting)
        try:
            unshare(_NEWUSER)
            os.write(ready, b"x")
        finally:
            os.close(ready)
            code = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
        if code != 0:
            raise OSError(code, os.strerror(code))

    def _build_root(self, *, nobody: bool) -> None:
        """Make a root of what Python needs to start, read-only, and make the host's root unreachable."""
        root: str = self._settings["root"]
        mount("none", "/", None, _MS_SLAVE | _MS_REC)
        os.umask(0o022)
        owner = f"uid={NOBODY},gid={NOBODY}"
        mount("tmpfs", root, "tmpfs", _MS_NOSUID | _MS_NODEV, f"size=256k,nr_inodes=2048,mode=755,{owner}")
        os.chdir(root)
        attributes = _MS_RDONLY | _MS_NOSUID | _MS_NODEV
        trees = {to: _take_tree(path, attributes) for path, to in self._settings["binds"].items()}
        trees["/dev/null"] = _take_tree("/dev/null", _MS_NOSUID)
        folders = {to for path, to in self._settings["binds"].items() if os.path.isdir(path)}
        if nobody:
            self._become_nobody()  # others cannot make files in a file system of this user namespace
        for name in ("proc", "tmp"):
            os.mkdir(name)
        options = _MS_NOSUID | _MS_NODEV | _MS_NOEXEC
        mount("tmpfs", "tmp", "tmpfs", options, f"{self._settings['tmpfs']},{owner}")
        for to, tree in trees.items():
            _put_tree(tree, f".{to}", folder=to in folders)
        for link, target in self._settings["links"].items():
            os.symlink(target, f".{link}")
        for path in self._settings["hidden"]:
            mount("tmpfs", f".{path}", "tmpfs", attributes, f"size=4k,mode=555,{owner}")
        if os.getpid() == 1:
            try:  # nothing but processes; older kernels know it as a whole only
                mount("proc", "proc", "proc", options, "subset=pid")
            except OSError:
                mount("proc", "proc", "proc", options)
        else:
            mount("/proc", "proc", None, _MS_BIND | _MS_REC)
        call(self._machine["pivot_root"], b".", b".")
        check(_libc.umount2(b".", _MNT_DETACH))
        os.chdir("/")
        for path in ("/", "/tmp"):  # not what lies below: /dev/null must stay a device
            set_attributes(_AT_FDCWD, path, attributes, below=0)

    def _drop_privileges(self, *, nobody: bool) -> None:
        """Give up every capability for good, and root's name where there is another."""
        if nobody:
            self._become_nobody()
        follow_parent()  # changing the user forgets it
        self.attempt("capabilities", self._drop_capabilities)

    def _become_nobody(self) -> None:
        if self._as_root:
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)

    def _drop_capabilities(self) -> None:
        capability = 0
        while _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
            capability += 1
        _libc.prctl(_PR_SET_SECUREBITS, _NO_ROOT_LOCKED, 0, 0, 0)
        _libc.prctl(_PR_CAP_AMBIENT, 4, 0, 0, 0)
        header, none = struct.pack("Ii", 0x20080522, 0), bytes(24)
        call(self._machine["capset"], header, none)
        check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))

    def _restrict_files(self) -> None:
        """Allow reading of what Python needs, running of Python itself, and nothing to be written."""
        version = call(_LANDLOCK_CREATE, None, 0, 1)
        rights = _FILE_RIGHTS[max(each for each in _FILE_RIGHTS if each <= version)]
        attributes = struct.pack("QQQ", rights, 0b11 if version >= 4 else 0, 0b11 if version >= 6 else 0)
        size = 24 if version >= 6 else 16 if version >= 4 else 8
        ruleset = call(_LANDLOCK_CREATE, attributes, size, 0)
        for path, to in {**self._settings["binds"], "/proc/self": "/proc/self"}.items():
            place = to if self._moved else path
            _allow(ruleset, place, _READ | (_READ_FOLDER if os.path.isdir(place) else 0))
        for path in self._settings["executables"]:
            _allow(ruleset, path, _READ | _EXECUTE)
        _allow(ruleset, "/dev/null", _READ | _WRITE)
        call(_LANDLOCK_RESTRICT, ruleset, 0)
        os.close(ruleset)

    def _limit(self, *, processes: bool) -> None:
        """Apply resource limits; lower ones already set stay.

        Args:
            processes: their number is counted within a user namespace of our own, not over all of a user's.
        """
        for name, wanted in self._settings["limits"].items():
            kind = getattr(resource, name, None)
            if kind is None or (name == "RLIMIT_NPROC" and not processes):
                continue
            hard = resource.getrlimit(kind)[1]
            value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
            resource.setrlimit(kind, (value, value))

    def _filter_calls(self) -> None:
        code = base64.b64decode(self._settings["filter"])
        block = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(block))
        check(_libc.prctl(_PR_SET_SECCOMP, 2, ctypes.c_char_p(program), 0, 0))


def follow_parent() -> None:
    """End when the parent does; where another system than Linux has no such thing, sweeping must do."""
    if sys.platform == "linux":
        parent = os.getppid()
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # it died before the line above


def unshare(flags: int) -> None:
    """Leave namespaces."""
    check(_libc.unshare(flags))


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount, as mount(2)."""
    words = [None if each is None else each.encode() for each in (source, target, kind, options)]
    check(_libc.mount(*words[:3], ctypes.c_ulong(flags), words[3]))


def set_attributes(folder: int, path: str, attributes: int, *, below: int = _AT_RECURSIVE) -> None:
    """Add attributes to the mounts at a path and, but for ``below=0``, below it; those they have stay."""
    block = struct.pack("QQQQ", attributes, 0, 0, 0)
    call(_MOUNT_SETATTR, folder, path.encode(), below | _AT_EMPTY_PATH, block, len(block))


def call(number: int, *arguments: object) -> int:
    """Make a system call; raises OSError."""
    return check(_libc.syscall(number, *arguments))


def check(result: int) -> int:
    """Return the result of a C function, or raise OSError where it failed."""
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return result


def stop(why: str) -> NoReturn:
    """End without a guest, with the reason on stderr."""
    os.write(2, f"bascule: a wall could not be built here: {why}\n".encode())
    os._exit(1)


def _put(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _take_tree(path: str, attributes: int) -> int:
    """Return a copy of the mounts at a path, with attributes, that is mounted nowhere yet."""
    tree = call(_OPEN_TREE, _AT_FDCWD, path.encode(), 1 | _AT_RECURSIVE | os.O_CLOEXEC)
    set_attributes(tree, "", attributes)
    return tree


def _put_tree(tree: int, target: str, *, folder: bool) -> None:
    """Mount it, on an empty folder or file that is made here."""
    os.makedirs(target if folder else os.path.dirname(target), exist_ok=True)
    if not folder:
        os.close(os.open(target, os.O_CREAT, 0o444))
    call(_MOVE_MOUNT, tree, b"", _AT_FDCWD, target.encode(), _MOVE_FROM_EMPTY_PATH)
    os.close(tree)


def _allow(ruleset: int, path: str, rights: int) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    call(_LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, place), 0)
    os.close(place)


if __name__ == "__main__":
    Walls(json.loads(sys.argv[1])).surround()

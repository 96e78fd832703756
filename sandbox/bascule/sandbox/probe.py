"""Runs inside a sandbox, in place of the guest, and reports which walls hold. Standard library only.

Every check tries the thing itself: it opens the socket, writes the file, makes the call. What it reports is
worth as much as the sandbox is ours: it is for operators and tests, never for deciding about a script.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import socket
import stat
import sys
from collections.abc import Callable, Iterator

Verdict = tuple[bool, str]

CALLS: dict[str, tuple[int | None, int | None]] = {}
FAMILIES: dict[str, int] = {}
"""What to try; filled by ``main`` from ``refused``."""

_MAX_FILES = 20_000
_NOT_IMAGE = {"proc", "sys", "dev", "tmp", "channel"}

_SHELLS = {"sh", "bash", "dash", "busybox", "ash", "zsh", "ksh"}
_DEVICES = {
    *("console", "core", "fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin"),
    *("stdout", "tty", "urandom", "zero"),
}


def user(expected: dict[str, int]) -> Verdict:
    ids = (os.getuid(), os.geteuid(), os.getgid(), os.getegid())
    return 0 not in ids and not set(os.getgroups()) - {ids[2]}, f"uid, euid, gid, egid {ids}"


def capabilities(expected: dict[str, int]) -> Verdict:
    found = {name: value for name, value in _status().items() if name.startswith("Cap")}
    return all(int(value, 16) == 0 for value in found.values()), ", ".join(
        f"{name}={value}" for name, value in sorted(found.items())
    )


def new_privileges(expected: dict[str, int]) -> Verdict:
    value = _status().get("NoNewPrivs", "?")
    return value == "1", f"NoNewPrivs={value}"


def seccomp(expected: dict[str, int]) -> Verdict:
    value = _status().get("Seccomp", "?")
    return value == "2", f"Seccomp={value} (2 is a filter)"


def system_calls(expected: dict[str, int]) -> Verdict:
    """Call each with arguments that fail anyway; only a filter answers EPERM or ENOSYS to all of them."""
    column = 0 if os.uname().machine == "x86_64" else 1
    libc = ctypes.CDLL(None, use_errno=True)
    open_calls: list[str] = []
    for name, numbers in CALLS.items():
        number = numbers[column]
        if number is None:
            continue
        ctypes.set_errno(0)
        result = libc.syscall(number, -1, -1, -1, -1, -1, -1)
        if result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            open_calls.append(f"{name}: {errno.errorcode.get(ctypes.get_errno(), 'done')}")
    return not open_calls, ", ".join(open_calls) or f"{len(CALLS)} dangerous calls refused"


def namespaces(expected: dict[str, int]) -> Verdict:
    """Plain clone with CLONE_NEWUSER, the way round a filter that only knows unshare."""
    number = 56 if os.uname().machine == "x86_64" else 220
    libc = ctypes.CDLL(None, use_errno=True)
    child = libc.syscall(number, 0x10000000 | 17, 0, 0, 0, 0)
    if child == 0:
        os._exit(0)
    if child > 0:
        os.waitpid(child, 0)
    return child < 0, "clone(CLONE_NEWUSER) " + ("worked" if child > 0 else "refused")


def sockets(expected: dict[str, int]) -> Verdict:
    """A guest that meets its host at a socket may make that kind, but not bind it: nobody else can come."""
    made: list[str] = []
    channel = any(line.split()[1] == "/channel" for line in _read("/proc/self/mounts").splitlines())
    for name, family in FAMILIES.items():
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
            if channel and (family, kind) == (socket.AF_UNIX, socket.SOCK_STREAM) and _bind_refused():
                continue
            try:
                socket.socket(family, kind).close()
            except OSError:
                continue
            made.append(name)
            break
    kept = ", less the channel's own kind" if channel else ""
    return not made, ", ".join(made) + " can be made" if made else f"{len(FAMILIES)} families refused{kept}"


def _bind_refused() -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        try:
            made.bind("\0bascule-probe")
        except OSError as error:
            return error.errno == errno.EPERM
    return False


def interfaces(expected: dict[str, int]) -> Verdict:
    names = [line.partition(":")[0].strip() for line in _read("/proc/self/net/dev").splitlines()[2:]]
    routes = _read("/proc/self/net/route").splitlines()[1:]
    return set(names) <= {"lo"} and not routes, f"interfaces {names}, {len(routes)} routes"


def read_only_root(expected: dict[str, int]) -> Verdict:
    written: list[str] = []
    for folder in (
        "/",
        "/etc",
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/bascule",
        "/var",
        "/var/tmp",
        "/run",
        "/dev",
        "/proc",
        "/sys",
        "/home",
    ):
        place = os.path.join(folder, "bascule-probe")
        try:
            os.close(os.open(place, os.O_WRONLY | os.O_CREAT, 0o600))
        except OSError:
            continue
        os.unlink(place)
        written.append(folder)
    return not written, ("could write in " + ", ".join(written)) if written else "no folder could be written"


def writable_places(expected: dict[str, int]) -> Verdict:
    found = [path for path, _ in _files() if os.access(path, os.W_OK)]
    return not found, f"{len(found)} writable: {found[:5]}" if found else "none outside /tmp"


def temporary_folder(expected: dict[str, int]) -> Verdict:
    for line in _read("/proc/self/mounts").splitlines():
        _, point, kind, options = line.split()[:4]
        if point == "/tmp" and kind == "tmpfs":
            missing = {"noexec", "nosuid", "nodev"} - set(options.split(","))
            told = {name: value for name, _, value in (each.partition("=") for each in options.split(","))}
            size = int(told.get("size", "0k").removesuffix("k")) * 1024
            files = int(told.get("nr_inodes", "0"))
            few = 0 < files <= expected["tmpfs_files"] or not os.access("/tmp", os.W_OK)
            small = 0 < size <= expected["tmpfs_bytes"] and few
            return small and not missing, f"{size} bytes, {files} files, lacks {sorted(missing)}"
    return False, "/tmp is not a tmpfs of its own"


def setuid_files(expected: dict[str, int]) -> Verdict:
    found = [path for path, status in _files() if status.st_mode & (stat.S_ISUID | stat.S_ISGID)]
    return not found, ", ".join(found[:5]) or "none"


def shells(expected: dict[str, int]) -> Verdict:
    found = [path for path, _ in _files() if path.rpartition("/")[2] in _SHELLS]
    return not found, ", ".join(found[:5]) or "none"


def devices(expected: dict[str, int]) -> Verdict:
    try:
        extra = sorted(set(os.listdir("/dev")) - _DEVICES)
    except PermissionError:
        return True, "may not even look"
    return not extra, f"unexpected: {extra[:8]}" if extra else "only the harmless ones"


def shared_memory(expected: dict[str, int]) -> Verdict:
    there = os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK)
    return not there, "/dev/shm is writable" if there else "no /dev/shm to write"


def process_view(expected: dict[str, int]) -> Verdict:
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except PermissionError:
        others = [pid for pid in (1, os.getppid()) if _read(f"/proc/{pid}/status")]
        return not others, f"reads of processes {others}" if others else "may not even look"
    return len(pids) <= 3, f"sees processes {pids[:8]}"


def kernel_files(expected: dict[str, int]) -> Verdict:
    opened: list[str] = []
    for path in (
        "/proc/sysrq-trigger",
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/kernel/hostname",
        "/sys/kernel/uevent_helper",
    ):
        try:
            os.close(os.open(path, os.O_WRONLY))
        except OSError:
            continue
        opened.append(path)
    if _read("/proc/kcore", 1):
        opened.append("/proc/kcore")
    return not opened, ("opened " + ", ".join(opened)) if opened else "none could be opened"


def environment(expected: dict[str, int]) -> Verdict:
    allowed = {
        "PATH",
        "PYTHONHASHSEED",
        "LC_ALL",
        "TZ",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONUNBUFFERED",
        "HOME",
        "HOSTNAME",
        "LC_CTYPE",
        "TERM",  # podman sets these two to constants
        "container",
    }
    extra = sorted(set(os.environ) - allowed)
    return not extra, f"extra variables {extra}" if extra else "only ours"


def open_files(expected: dict[str, int]) -> Verdict:
    descriptors = sorted(int(name) for name in os.listdir("/proc/self/fd"))
    extra = [number for number in descriptors if number > 2 and os.path.exists(f"/proc/self/fd/{number}")]
    return not extra, f"inherited {extra}" if extra else "0, 1 and 2"


def memory(expected: dict[str, int]) -> Verdict:
    limit = _number("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
    swap = _number("/sys/fs/cgroup/memory.swap.max")
    both = _number("/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes")
    no_swap = (
        swap == 0
        or (both is not None and both == limit)
        or "SwapTotal:              0 kB" in _read("/proc/meminfo")
    )
    if limit is not None and limit <= expected["memory_bytes"]:
        return no_swap, f"{limit} bytes, swap adds {'nothing' if no_swap else 'more'}"
    spaces = [resource.getrlimit(each)[1] for each in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    space = min((each for each in spaces if each > 0), default=0)  # negative: unlimited
    bounded = 0 < space <= expected["address_space_bytes"]
    return bounded and _is_alone(), f"address space {space} bytes, swap included, in one process"


def processes(expected: dict[str, int]) -> Verdict:
    limit = _number("/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max")
    if limit is not None and limit <= expected["pids"]:
        return True, f"{limit} processes and threads"
    threads = resource.getrlimit(resource.RLIMIT_NPROC)[1]
    return 0 < threads <= expected["pids"] and _is_alone(), f"{threads} threads, no other process"


def _is_alone() -> bool:
    """Whether a second process is refused, so that a limit of one process is one of the sandbox."""
    try:
        child = os.fork()
    except PermissionError:
        return True
    except OSError:
        return False
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return False


def cpu(expected: dict[str, int]) -> Verdict:
    told = _read("/sys/fs/cgroup/cpu.max").split()
    if not told:
        told = [
            _read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us").strip(),
            _read("/sys/fs/cgroup/cpu/cpu.cfs_period_us").strip(),
        ]
    if not (told[0].isdecimal() and told[1].isdecimal()):
        return False, "no quota"
    millis = int(told[0]) * 1000 // int(told[1])
    return millis <= expected["cpu_millis"], f"{millis / 1000:g} cpus"


def resource_limits(expected: dict[str, int]) -> Verdict:
    wanted = {
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": expected["nofile"],
        "RLIMIT_FSIZE": expected["tmpfs_bytes"],
        "RLIMIT_MSGQUEUE": 0,
    }
    wrong: list[str] = []
    for name, value in wanted.items():
        hard = resource.getrlimit(getattr(resource, name))[1]
        if hard == resource.RLIM_INFINITY or hard > value:
            wrong.append(f"{name}={hard}")
    return not wrong, ", ".join(wrong) or "core 0, files, file size and queues bounded"


CHECKS: tuple[Callable[[dict[str, int]], Verdict], ...] = (
    *(user, capabilities, new_privileges, seccomp, system_calls, namespaces, sockets, interfaces),
    *(read_only_root, writable_places, temporary_folder, setuid_files, shells, devices, shared_memory),
    *(process_view, kernel_files, environment, open_files, memory, processes, cpu, resource_limits),
)


def _files() -> Iterator[tuple[str, os.stat_result]]:
    """Walk everything but the kernel's own file systems and the folders for files of one run.

    Raises:
        RuntimeError: there is more than an image of ours can hold; this is the host's root.
    """
    seen = 0
    for folder, names, files in os.walk("/"):
        if folder == "/":
            names[:] = sorted(set(names) - _NOT_IMAGE)
        for name in (*names, *files):
            path = os.path.join(folder, name)
            status = os.lstat(path)
            seen += 1
            if seen > _MAX_FILES:
                raise RuntimeError("the root is not a guest image: it has too many files")
            if not stat.S_ISLNK(status.st_mode):
                yield path, status


def _status() -> dict[str, str]:
    pairs = (line.partition(":") for line in _read("/proc/self/status").splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _number(*paths: str) -> int | None:
    for path in paths:
        text = _read(path).strip()
        if text.isdecimal():
            return int(text)
    return None


def _read(path: str, size: int = 1 << 16) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(size).decode("utf-8", "replace")
    except OSError:
        return ""


def main() -> None:
    """Write one frame: a JSON object of check name to [holds, detail]."""
    expected: dict[str, int] = json.loads(sys.argv[1])
    CALLS.update(json.loads(sys.argv[2]))
    FAMILIES.update(json.loads(sys.argv[3]))
    report: dict[str, Verdict] = {}
    for check in CHECKS:
        try:
            report[check.__name__] = check(expected)
        except Exception as error:  # a check that breaks has not shown that the wall holds
            report[check.__name__] = (False, f"check broke: {type(error).__name__}: {error}")
    payload = json.dumps(report).encode()
    os.write(1, len(payload).to_bytes(4, "big") + payload)


if __name__ == "__main__":
    main()

"""What a sandbox must refuse, as data for the self-check: kinds of sockets and system calls, with numbers.

The filter itself is an allow-list (images/guest/seccomp.json); this list is what an intruder would try.
"""

from __future__ import annotations

SOCKET_FAMILIES = {
    "AF_UNIX": 1,
    "AF_INET": 2,
    "AF_INET6": 10,
    "AF_NETLINK": 16,
    "AF_PACKET": 17,
    "AF_ALG": 38,
    "AF_VSOCK": 40,
    "AF_XDP": 44,
}

SYSTEM_CALLS: dict[str, tuple[int | None, int | None]] = {
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "bpf": (321, 280),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "io_uring_setup": (425, 425),
    "process_vm_readv": (310, 270),
    "pidfd_open": (434, 434),
    "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104),
    "init_module": (175, 105),
    "modify_ldt": (154, None),
    "personality": (135, 92),
    "mq_open": (240, 180),
    "shmget": (29, 194),
    "mknodat": (259, 33),
    "landlock_create_ruleset": (444, 444),
    "seccomp": (317, 277),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
}
"""Numbers on x86_64 and aarch64; None where the processor has no such call."""

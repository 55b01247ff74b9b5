/** System calls by name for `perl` scripts: every distribution has perl, and it needs no compiler. */

const NUMBERS = {
  x64: `ptrace 101 process_vm_readv 310 process_vm_writev 311 mount 165 umount2 166 unshare 272 setns 308 chroot 161 pivot_root 155
    mknodat 259 bpf 321 perf_event_open 298 keyctl 250 add_key 248 request_key 249 io_uring_setup 425 init_module 175 finit_module 313
    kexec_load 246 reboot 169 swapon 167 sethostname 170 acct 163 syslog 103 quotactl 179 userfaultfd 323 name_to_handle_at 303
    open_by_handle_at 304 openat2 437 renameat2 316 pidfd_open 434 pidfd_getfd 438 pidfd_send_signal 424 fsopen 430 open_tree 428
    prlimit64 302 setpriority 141 sched_setaffinity 203 ioprio_set 251 tgkill 234 memfd_create 319 adjtimex 159 iopl 172 socket 41
    shmget 29 shmat 30 msgget 68 msgrcv 70 fanotify_init 300 lookup_dcookie 212 vhangup 153 clone 56 prctl 157`,
  arm64: `ptrace 117 process_vm_readv 270 process_vm_writev 271 mount 40 umount2 39 unshare 97 setns 268 chroot 51 pivot_root 41
    mknodat 33 bpf 280 perf_event_open 241 keyctl 219 add_key 217 request_key 218 io_uring_setup 425 init_module 105 finit_module 273
    kexec_load 104 reboot 142 swapon 224 sethostname 161 acct 89 syslog 116 quotactl 60 userfaultfd 282 name_to_handle_at 264
    open_by_handle_at 265 openat2 437 renameat2 276 pidfd_open 434 pidfd_getfd 438 pidfd_send_signal 424 fsopen 430 open_tree 428
    prlimit64 261 setpriority 140 sched_setaffinity 122 ioprio_set 30 tgkill 131 memfd_create 279 adjtimex 171 iopl 9999 socket 198
    shmget 194 shmat 196 msgget 186 msgrcv 188 fanotify_init 262 lookup_dcookie 18 vhangup 58 clone 220 prctl 167`,
}

/**
 * `call(name, …)` makes the call and returns its result, -1 if it failed. `attempt(name, …)` also prints `refused` for EPERM,
 * EACCES and ENOSYS, otherwise the outcome.
 */
export const SYSCALLS = `
use strict;
my %number = qw(${process.arch === 'arm64' ? NUMBERS.arm64 : NUMBERS.x64});
sub call {
  my $name = shift;
  my @given = map { my $copy = $_; Internals::SvREADONLY($_) ? \\$copy : \\$_ } @_;
  push @given, \\(my $zero = 0) while @given < 6;
  syscall($number{$name}, \${$given[0]}, \${$given[1]}, \${$given[2]}, \${$given[3]}, \${$given[4]}, \${$given[5]});
}
sub attempt {
  my $result = call(@_);
  my $error = $! + 0;
  print $result != -1 ? "$_[0] done;" : ($error == 1 || $error == 13 || $error == 38) ? 'refused;' : "$_[0] failed with $error;";
}
`

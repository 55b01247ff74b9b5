/** Runs a program in an empty network namespace and records every address that it or a child process tries to reach. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { isLoopback } from '@sluice/kit'
import { debianProgram, type MissingProgram } from '../debian-program.ts'

/** The calls that name an address. Node uses io_uring for files and events only, never for sockets. */
const CALLS = 'connect,sendto,sendmsg,sendmmsg'
/** strace writes `sin_port=htons(80), sin_addr=inet_addr("192.0.2.1")`, and `inet_pton(AF_INET6, "2001:db8::1"` for version 6. */
const ADDRESS = /sin6?_port=htons\((\d+)\)[^}]*?(?:inet_addr\("([^"]+)"\)|inet_pton\(AF_INET6, "([^"]+)")/g
const NAME_SERVER_PORT = '53'

export interface NamespaceTools {
  readonly strace: string
  readonly env: Readonly<Record<string, string>>
  /** The words of `unshare`, which root and other users need different options of. */
  readonly unshare: readonly string[]
}

/** Finds the programs, and tries them; `missing` is the reason why nothing can be recorded here. */
export async function namespaceTools(): Promise<NamespaceTools | MissingProgram> {
  if (process.platform !== 'linux') return { missing: 'network namespaces need Linux' }
  const strace = await debianProgram({ packages: ['strace'], program: 'usr/bin/strace' })
  if ('missing' in strace) return strace
  const unshare = ['unshare', '--net', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])]
  const [program = '', ...options] = unshare
  const tried = spawnSync(program, [...options, strace.path, '--follow-forks', '--trace=connect', 'true'], {
    encoding: 'utf8',
    env: { ...process.env, ...strace.env },
  })
  if (tried.status !== 0) return { missing: `no network namespace can be traced here: ${(tried.stderr ?? '').trim().split('\n')[0]}` }
  return { strace: strace.path, env: strace.env, unshare }
}

export interface Recorded {
  readonly code: number | null
  readonly output: string
  /** Addresses outside of this machine, without repeats, and `a name server` for any name server, even on this machine. */
  readonly attempts: readonly string[]
}

/** Runs a shell script whose only network is its own loopback. */
export async function recordAttempts(
  tools: NamespaceTools,
  script: string,
  { log, env }: { readonly log: string; readonly env: Record<string, string> },
): Promise<Recorded> {
  const trace = [tools.strace, '--follow-forks', '--seccomp-bpf', '--quiet=all', '--string-limit=0', `--trace=${CALLS}`, `--output=${log}`]
  const [program = '', ...words] = [...tools.unshare, 'sh', '-c', LOOPBACK, 'sh', ...trace, 'sh', '-c', script]
  const child = spawn(program, words, { env: { ...env, ...tools.env }, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text: string) => (output += text))
  const [code] = (await once(child, 'close')) as [number | null]
  const text = await readFile(log, 'utf8')
  const outside = [...text.matchAll(ADDRESS)].flatMap(([, port = '', version4, version6]) => {
    const address = version4 ?? version6 ?? ''
    if (port === NAME_SERVER_PORT) return 'a name server'
    return isLoopback(address) ? [] : address
  })
  return { code, output, attempts: [...new Set(outside)].toSorted() }
}

/** Brings the loopback up, without which the namespace has no network at all. Node has no call for it, so Perl or ip does it. */
const LOOPBACK = `ip link set lo up 2>/dev/null || perl -e '
  socket(my $s, 2, 2, 0) or die; my $r = pack("a16 s", "lo", 0x1 | 0x40); ioctl($s, 0x8914, $r) or die "loopback: $!\\n"' || exit 1
exec "$@"`

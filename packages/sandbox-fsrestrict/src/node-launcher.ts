/**
 * The launcher for machines without Perl. The daemon imports this module for its URL, and a Node process runs it. That
 * process makes the system calls in its first argument, sets the command's environment, and becomes the command in its other
 * arguments. Import this module only dynamically, so that a bundler puts it into a separate file.
 */
import { writeSync } from 'node:fs'

export const LAUNCHER_URL = import.meta.url
export const LAUNCHER_MARK = 'sluice-fsrestrict-launcher'

const SIGPIPE = 13
const ENOENT = 2
const F_SETFD = 2
const FAILED = 125

interface Libc {
  syscall(number: number, ...typed: unknown[]): number
  signal(number: number, handler: null): unknown
  fcntl(fd: number, command: number, flags: number): number
  execvp(file: string, argv: readonly (string | null)[]): number
  strerror(error: number): string
  _exit(code: number): never
}

if (process.argv[2] === LAUNCHER_MARK) {
  const { default: koffi } = await import('koffi')
  const own = koffi.load(null)
  koffi.struct('Filter', { length: 'uint16', program: 'void *' })
  const libc = {
    syscall: own.func('long syscall(long number, ...)'),
    signal: own.func('void *signal(int number, void *handler)'),
    fcntl: own.func('int fcntl(int fd, int command, int flags)'),
    execvp: own.func('int execvp(const char *file, const char **argv)'),
    strerror: own.func('const char *strerror(int error)'),
    _exit: own.func('void _exit(int code)'),
  } as unknown as Libc
  const [calls = '', file, ...args] = process.argv.slice(3)
  makeCalls(calls, libc, () => koffi.errno())
  if (file !== undefined) become(libc, file, args, () => koffi.errno())
}

function makeCalls(calls: string, libc: Libc, errno: () => number): void {
  const results: number[] = []
  for (const line of calls.split('\n')) {
    const [failing, name, number, ...given] = line.split(' ')
    const result = Number(libc.syscall(Number(number), ...given.flatMap((each) => typed(each, results))))
    if (failing === 'p') writeSync(1, String(result === -1 ? -errno() : result))
    else if (result === -1 && failing === '!') fail(libc, `the sandbox fails: ${name}: ${libc.strerror(errno())}`, FAILED)
    results.push(result)
  }
}

/** Decodes an argument that `encodeCalls` wrote. Returns its C type and its value. */
function typed(given: string, results: readonly number[]): [type: string, value: unknown] {
  const rest = given.slice(1)
  switch (given[0]) {
    case 'f': {
      const program = Buffer.from(rest, 'hex')
      return ['Filter *', { length: program.length / 8, program }]
    }
    case 'x': {
      const [bytes = '', then] = rest.split('r')
      const last = Buffer.alloc(then === undefined ? 0 : 4)
      if (then !== undefined) last.writeInt32LE(results[Number(then)] ?? -1)
      return ['void *', Buffer.concat([Buffer.from(bytes, 'hex'), last])]
    }
    case 'r':
      return ['long', results[Number(rest)] ?? -1]
    default:
      return ['long', Number(given)]
  }
}

function become(libc: Libc, file: string, args: readonly string[], errno: () => number): void {
  const given = Object.entries(process.env).flatMap(([name, value]) =>
    name.startsWith('COMMAND_') && value !== undefined ? [[name.slice('COMMAND_'.length), value] as const] : [],
  )
  for (const name of Object.keys(process.env)) delete process.env[name]
  for (const [name, value] of given) process.env[name] = value
  // Node ignores SIGPIPE, which the command would inherit, and marks the three streams as close-on-exec.
  libc.signal(SIGPIPE, null)
  for (const fd of [0, 1, 2]) libc.fcntl(fd, F_SETFD, 0)
  libc.execvp(file, [file, ...args, null])
  const error = errno()
  fail(libc, `${file}: ${libc.strerror(error)}`, error === ENOENT ? 127 : 126)
}

/** Ends the process directly, because the confinement may stop Node from exiting normally. */
function fail(libc: Libc, message: string, code: number): never {
  writeSync(2, `${message}\n`)
  return libc._exit(code)
}

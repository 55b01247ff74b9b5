/** Proves that a backend confines on this machine: runs a command that tries to get out, before the backend is chosen. */
import { randomBytes } from 'node:crypto'
import { access, constants, mkdir, mkdtemp, readdir, readFile, realpath, rm, rmdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { RunBare, Sandbox } from '@sluice/sdk'

/** Connects to each Unix socket given and prints its path; `@` stands for the first byte of an abstract name. */
const KNOCK_PERL = String.raw`use Socket; for my $at (@ARGV) { (my $name = $at) =~ s/^@/\0/; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or next; print "reached $at\n" if connect($s, $name =~ /^\0/ ? pack("S a*", AF_UNIX, $name) : pack_sockaddr_un($name)) }`
const KNOCK_PYTHON = String.raw`
import socket, sys
for at in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect("\0" + at[1:] if at[0] == "@" else at)
        print("reached", at)
    except OSError: pass`

/**
 * For `sh`. The arguments are a port, a word to write inside, a script for perl and one for python that connect to sockets, the
 * number of folders outside, these folders, and the sockets. It reads and changes what it must not, then prints what it saw; at
 * last it does what it must be able to do.
 */
const ATTEMPTS = `
port=$1 word=$2 perl=$3 python=$4 count=$5
shift 5
while [ "$count" -gt 0 ]; do
  cat "$1/canary" 2>/dev/null
  (echo changed >"$1/canary") 2>/dev/null
  (: >"$1/new") 2>/dev/null
  rm -f "$1/canary" 2>/dev/null
  ln "$1/canary" hard 2>/dev/null && cat hard && echo changed >hard
  ln -s "$1/canary" soft 2>/dev/null; cat soft 2>/dev/null
  rm -f hard soft
  shift; count=$((count-1))
done
bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"' "$port" 2>/dev/null ||
  perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0], Timeout => 2)' "$port" 2>/dev/null ||
  nc -w 2 127.0.0.1 "$port" </dev/null 2>/dev/null
perl -e "$perl" "$@" 2>/dev/null || python3 -c "$python" "$@" 2>/dev/null
echo "$word" >inside`

/** More of the sockets that this machine already has are not tried. */
const OTHER_SOCKETS_MAX = 16

export interface ProofOptions {
  readonly run: RunBare
  readonly signal: AbortSignal
  /** The folder commands run in; made for the proof where it is missing. */
  readonly workspace: string
  /** Folders outside to plant a file and a socket in; those this user may not write in are left out. */
  readonly places: readonly string[]
}

/** Folders that hold files and sockets no command may reach. */
export const proofPlaces = (dataDir: string): readonly string[] => {
  const { XDG_RUNTIME_DIR } = process.env
  return [dataDir, tmpdir(), '/run', '/run/lock', XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`]
}

/** Says what got out, as the end of a sentence; `undefined` if nothing did and the command worked. */
export async function proveSandbox(sandbox: Sandbox, options: ProofOptions): Promise<string | undefined> {
  const { run, signal, workspace, places } = options
  const undo: (() => unknown)[] = []
  try {
    const root = await makeFolder(workspace, undo)
    const inside = await mkdtemp(join(root, '.sluice-proof-'))
    undo.push(() => rm(inside, { recursive: true, force: true }))
    const [secret, word] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
    let connections = 0
    const listen = async (at: string | number): Promise<Server | undefined> => {
      const server = await listening(at, () => connections++)
      if (server) undo.push(() => server.close())
      return server
    }
    const outside: string[] = []
    const sockets = await othersSockets()
    for (const place of await distinctFolders(places)) {
      if (`${place}/`.startsWith(`${root}/`)) continue
      const folder = await mkdtemp(join(place, 'sluice-proof-')).catch(() => undefined)
      if (folder === undefined) continue
      undo.push(() => rm(folder, { recursive: true, force: true }))
      await writeFile(join(folder, 'canary'), secret)
      // A path may be too long for a socket.
      if (await listen(join(folder, 'socket'))) sockets.push(join(folder, 'socket'))
      outside.push(folder)
    }
    const abstract = `sluice-proof-${word}`
    if (process.platform === 'linux' && (await listen(`\0${abstract}`))) sockets.push(`@${abstract}`)
    const tcp = await listen(0)
    const port = (tcp?.address() as AddressInfo | undefined)?.port ?? 0
    const before = await Promise.all(outside.map((folder) => readdir(folder)))

    const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: root }
    const args = [String(port), word, KNOCK_PERL, KNOCK_PYTHON, String(outside.length), ...outside, ...sockets]
    const command = await sandbox.wrap(
      { file: 'sh', args: ['-c', ATTEMPTS, 'sh', ...args], cwd: inside, env },
      { writable: [root], network: false },
    )
    const { exitCode, stdout, stderr } = await run(command, signal).finally(() => command.release?.(run))
    if (stdout.includes(secret)) return 'a file outside was read'
    for (const [index, folder] of outside.entries()) {
      const isSame = (await readdir(folder)).join() === before[index]?.join()
      if (!isSame || (await readFile(join(folder, 'canary'), 'utf8').catch(() => '')) !== secret) return 'a file outside was changed'
    }
    const reached = /^reached (.+)$/m.exec(stdout)?.[1]
    if (reached !== undefined) return `the socket ${reached} was reached`
    if (connections > 0) return 'the network was reached'
    const written = await readFile(join(inside, 'inside'), 'utf8').catch(() => '')
    if (written.trim() !== word) return `no command can work in ${root}: ${stderr.trim().split('\n')[0] || `exit code ${exitCode}`}`
    return undefined
  } finally {
    for (const step of undo.reverse()) await step()
  }
}

/** Without links; `undo` gets a step that removes the folders that were missing, unless something was put there meanwhile. */
async function makeFolder(folder: string, undo: (() => unknown)[]): Promise<string> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (first !== undefined) {
    undo.push(async () => {
      for (let each = folder; each.startsWith(first); each = dirname(each)) await rmdir(each).catch(() => undefined)
    })
  }
  return realpath(folder)
}

async function distinctFolders(folders: readonly string[]): Promise<Set<string>> {
  const real = await Promise.all(folders.map((folder) => realpath(folder).catch(() => undefined)))
  return new Set(real.filter((folder) => folder !== undefined))
}

/** Sockets of other programs below /run that this user may connect to. */
async function othersSockets(): Promise<string[]> {
  const table = await readFile('/proc/net/unix', 'utf8').catch(() => '')
  const paths = [...table.matchAll(/ 00010000 0001 01 +\d+ (\/(?:var\/)?run\/\S+)$/gm)].map(([, path = '']) => path)
  const found: string[] = []
  for (const path of new Set(paths)) {
    const isOpen = await access(path, constants.W_OK).then(
      () => true,
      () => false,
    )
    if (isOpen && found.push(path) === OTHER_SOCKETS_MAX) break
  }
  return found
}

/** A server at a port of 127.0.0.1 (0: any) or at a socket; `undefined` where it cannot be made. */
function listening(at: string | number, onConnection: () => void): Promise<Server | undefined> {
  const { promise, resolve } = Promise.withResolvers<Server | undefined>()
  const server = createServer((socket) => {
    onConnection()
    socket.on('error', () => undefined).destroy()
  })
  server.on('error', () => resolve(undefined))
  if (typeof at === 'string') server.listen(at, () => resolve(server))
  else server.listen(at, '127.0.0.1', () => resolve(server))
  return promise
}

/** Proves that a backend confines commands on this machine: before it is chosen, a command tries to get out of it. */

import { randomBytes } from 'node:crypto'
import { access, constants, lstat, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { isWithin } from '@sluice/kit'
import type { RunBare, Sandbox } from '@sluice/sdk'
import { TRIAL_FOLDER } from '../workspace/file.ts'

/** Connects to each given Unix socket and prints the paths that answer; a leading `@` means an abstract name. */
const KNOCK_PERL = String.raw`use Socket; for my $at (@ARGV) { (my $name = $at) =~ s/^@/\0/; socket(my $s, AF_UNIX, SOCK_STREAM, 0) or next; print "reached $at\n" if connect($s, $name =~ /^\0/ ? pack("S a*", AF_UNIX, $name) : pack_sockaddr_un($name)) }`
const KNOCK_PYTHON = String.raw`
import socket, sys
for at in sys.argv[1:]:
    try:
        socket.socket(socket.AF_UNIX).connect("\0" + at[1:] if at[0] == "@" else at)
        print("reached", at)
    except OSError: pass`

/**
 * The script for `sh`. Its arguments are a port, a word to write inside, a script for perl and one for python that connect to
 * sockets, the number of folders outside, these folders, and the sockets. It tries to read and change files outside, to reach
 * the port and the sockets, and prints what it read and reached. Last, it writes the word in its own folder.
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

/** The largest number of sockets of other programs that the script tries. */
const OTHER_SOCKETS_MAX = 16

/** Every planted folder has a name that begins so. */
const PLANTED = 'sluice-proof-'
/** The socket in a planted folder. It exists only while a proof listens at it, or after the daemon was killed. */
const SOCKET = 'socket'
/** No proof takes so long: an older folder in which no socket answers was left by a daemon that was killed. */
const PLANTED_MS_MAX = 3_600_000

export interface ProofOptions {
  readonly run: RunBare
  readonly signal: AbortSignal
  /** The folder that commands run in; made for the proof where it does not exist. */
  readonly workspace: string
  /** Folders outside the workspace. A file and a socket are planted in each one that this user may write in. */
  readonly places: readonly string[]
  /** Sockets of other programs; those in the workspace are not tried. */
  readonly sockets: readonly string[]
}

/** What no command may reach on this machine: folders that hold files and sockets, and the sockets of other programs. */
export async function proofTargets(dataDir: string): Promise<Pick<ProofOptions, 'places' | 'sockets'>> {
  const { XDG_RUNTIME_DIR } = process.env
  const places = [dataDir, tmpdir(), '/run', '/run/lock', XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`]
  return { places, sockets: await othersSockets() }
}

/** Resolves to the resource that the command reached, as the end of a sentence; `undefined` if it reached none and worked. */
export async function proveSandbox(sandbox: Sandbox, options: ProofOptions): Promise<string | undefined> {
  const { run, signal, workspace, places, sockets } = options
  const proof = new Proof()
  try {
    const root = await proof.makeFolder(workspace)
    const inside = await proof.makeInside(root)
    await proof.plantOutside(places, root)
    await proof.listenOutside()
    proof.addSockets(sockets, root)

    const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: root }
    const command = await sandbox.wrap(
      { file: 'sh', args: ['-c', ATTEMPTS, 'sh', ...proof.scriptArguments()], cwd: inside, env },
      { writable: [root], network: false },
    )
    const { exitCode, stdout, stderr } = await run(command, signal).finally(() => command.release?.(run))
    const leak = await proof.findLeak(stdout)
    if (leak !== undefined) return leak
    if (await proof.hasWorked(inside)) return undefined
    return `no command can work in ${root}: ${stderr.trim().split('\n')[0] || `exit code ${exitCode}`}`
  } finally {
    await proof.undo()
  }
}

/** The files, sockets and ports of one proof: planted before the command runs, compared after it, and removed in the end. */
class Proof {
  /** The content of every planted file. */
  readonly #secret = randomBytes(16).toString('hex')
  /** The command writes it in its own folder. */
  readonly #word = randomBytes(16).toString('hex')
  readonly #outside: { readonly folder: string; readonly entries: readonly string[] }[] = []
  readonly #sockets: string[] = []
  readonly #undo: (() => unknown)[] = []
  #port = 0
  /** Connections to the port. Other proofs may connect to the planted sockets, so these count only when the command reports them. */
  #connections = 0

  /** Returns the folder's path without links. Folders that had to be made are removed again, unless something is in them. */
  async makeFolder(folder: string): Promise<string> {
    const first = await mkdir(folder, { recursive: true, mode: 0o700 })
    if (first !== undefined) {
      this.#undo.push(async () => {
        for (let each = folder; each.startsWith(first); each = dirname(each)) await rmdir(each).catch(() => undefined)
      })
    }
    return realpath(folder)
  }

  /** Makes the folder that the command runs in. */
  async makeInside(root: string): Promise<string> {
    const inside = await mkdtemp(join(root, TRIAL_FOLDER))
    this.#undo.push(() => rm(inside, { recursive: true, force: true }))
    return inside
  }

  /** Plants a file and a socket in each of the places that this user may write in and that are not in the workspace. */
  async plantOutside(places: readonly string[], root: string): Promise<void> {
    for (const place of await distinctFolders(places)) {
      if (isWithin(place, root)) continue
      await removeAbandoned(place)
      const folder = await mkdtemp(join(place, PLANTED)).catch(() => undefined)
      if (folder === undefined) continue
      this.#undo.push(() => rm(folder, { recursive: true, force: true }))
      await writeFile(join(folder, 'canary'), this.#secret)
      // The path may be too long for a socket. Under its final name the socket always answers, so that no other daemon takes the folder for abandoned.
      if (await this.#listen(join(folder, `.${SOCKET}`))) {
        await rename(join(folder, `.${SOCKET}`), join(folder, SOCKET))
        this.#sockets.push(join(folder, SOCKET))
      }
      this.#outside.push({ folder, entries: await readdir(folder) })
    }
  }

  /** Adds the sockets of other programs after the planted ones, so that what is reported first does not depend on the machine. */
  addSockets(sockets: readonly string[], root: string): void {
    this.#sockets.push(...sockets.filter((path) => !isWithin(path, root)))
  }

  /** Listens at an abstract socket, where the system has them, and at a port of this machine. */
  async listenOutside(): Promise<void> {
    const abstract = `${PLANTED}${this.#word}`
    if (process.platform === 'linux' && (await this.#listen(`\0${abstract}`))) this.#sockets.push(`@${abstract}`)
    const server = await this.#listen(0, () => this.#connections++)
    this.#port = (server?.address() as AddressInfo | undefined)?.port ?? 0
  }

  scriptArguments(): string[] {
    const folders = this.#outside.map(({ folder }) => folder)
    return [String(this.#port), this.#word, KNOCK_PERL, KNOCK_PYTHON, String(folders.length), ...folders, ...this.#sockets]
  }

  /** The resource that the command reached; `undefined` if it reached none. */
  async findLeak(stdout: string): Promise<string | undefined> {
    if (stdout.includes(this.#secret)) return 'a file outside was read'
    for (const { folder, entries } of this.#outside) {
      const isSame = (await readdir(folder)).join() === entries.join()
      const canary = await readFile(join(folder, 'canary'), 'utf8').catch(() => '')
      if (!isSame || canary !== this.#secret) return 'a file outside was changed'
    }
    const reached = /^reached (.+)$/m.exec(stdout)?.[1]
    if (reached !== undefined) return `the socket ${reached} was reached`
    return this.#connections > 0 ? 'the network was reached' : undefined
  }

  /** True if the command wrote the word in its own folder. */
  async hasWorked(inside: string): Promise<boolean> {
    const written = await readFile(join(inside, 'inside'), 'utf8').catch(() => '')
    return written.trim() === this.#word
  }

  async undo(): Promise<void> {
    for (const step of this.#undo.toReversed()) await step()
  }

  async #listen(at: string | number, onConnection?: () => void): Promise<Server | undefined> {
    const server = await listening(at, onConnection)
    if (server) this.#undo.push(() => server.close())
    return server
  }
}

/** Removes the folders that killed daemons of this user planted in the place. */
async function removeAbandoned(place: string): Promise<void> {
  for (const name of await readdir(place).catch(() => [])) {
    const folder = join(place, name)
    if (name.startsWith(PLANTED) && (await isAbandoned(folder))) await rm(folder, { recursive: true, force: true }).catch(() => undefined)
  }
}

async function isAbandoned(folder: string): Promise<boolean> {
  const found = await lstat(folder).catch(() => undefined)
  // Another user could replace a folder of theirs by a link while it is removed.
  if (!found?.isDirectory() || found.uid !== process.getuid?.()) return false
  const answer = await knock(join(folder, SOCKET))
  if (answer === undefined || answer === 'ECONNREFUSED') return answer !== undefined
  return Date.now() - found.mtimeMs > PLANTED_MS_MAX
}

/** Connects to a socket. Resolves to the code of the error; `undefined` if a process listens. */
function knock(path: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>()
  const socket = connect(path, () => resolve(undefined))
  socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code))
  return promise.finally(() => socket.destroy())
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

/** A server at a port of 127.0.0.1 (0: any free one) or at a socket; `undefined` where this user cannot listen there. */
function listening(at: string | number, onConnection?: () => void): Promise<Server | undefined> {
  const { promise, resolve } = Promise.withResolvers<Server | undefined>()
  const server = createServer((socket) => {
    onConnection?.()
    socket.on('error', () => undefined).destroy()
  })
  server.on('error', () => resolve(undefined))
  if (typeof at === 'string') server.listen(at, () => resolve(server))
  else server.listen(at, '127.0.0.1', () => resolve(server))
  return promise
}

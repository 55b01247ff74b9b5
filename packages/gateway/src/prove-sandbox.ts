/** The proof that a backend confines on this machine: a command that tries to get out, once, before the backend is chosen. */
import { randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { RunBare, Sandbox } from '@sluice/sdk'

/** Reads and changes what it must not, then says what it saw; last, what it must be able to do. */
const ATTEMPTS = `
cat "$1/canary" 2>/dev/null
(echo changed >"$1/canary") 2>/dev/null
(: >"$1/new") 2>/dev/null
rm -f "$1/canary" 2>/dev/null
ln "$1/canary" hard 2>/dev/null && cat hard && echo changed >hard
ln -s "$1/canary" soft 2>/dev/null; cat soft 2>/dev/null
bash -c 'exec 3<>"/dev/tcp/127.0.0.1/$0"' "$2" 2>/dev/null ||
  perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0], Timeout => 2)' "$2" 2>/dev/null ||
  nc -w 2 127.0.0.1 "$2" </dev/null 2>/dev/null
echo "$3" >inside`

/** What got out, as the end of a sentence; `undefined` if nothing did and the command worked. */
export async function proveSandbox(sandbox: Sandbox, run: RunBare, signal: AbortSignal): Promise<string | undefined> {
  const base = await realpath(await mkdtemp(join(tmpdir(), 'sluice-proof-')))
  const [inside, outside] = [join(base, 'inside'), join(base, 'outside')]
  const server = createServer((socket) => socket.on('error', () => undefined).destroy())
  let connections = 0
  server.on('connection', () => connections++)
  try {
    const [secret, word] = [randomBytes(16).toString('hex'), randomBytes(16).toString('hex')]
    await Promise.all([mkdir(inside), mkdir(outside)])
    await writeFile(join(outside, 'canary'), secret)
    const port = await listen(server)
    const env = { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: inside }
    const command = await sandbox.wrap(
      { file: 'sh', args: ['-c', ATTEMPTS, 'sh', outside, String(port), word], cwd: inside, env },
      { writable: [inside], network: false },
    )
    const { exitCode, stdout, stderr } = await run(command, signal).finally(() => command.release?.(run))
    if (stdout.includes(secret)) return 'a file outside was read'
    const left = await readdir(outside)
    if (left.length !== 1 || (await readFile(join(outside, 'canary'), 'utf8').catch(() => '')) !== secret)
      return 'a file outside was changed'
    if (connections > 0) return 'the network was reached'
    const written = await readFile(join(inside, 'inside'), 'utf8').catch(() => '')
    if (written.trim() !== word) return `a command could not do its work: ${stderr.trim().split('\n')[0] || `exit code ${exitCode}`}`
    return undefined
  } finally {
    server.close()
    await rm(base, { recursive: true, force: true })
  }
}

function listen(server: Server): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  server.once('error', reject)
  server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  return promise
}

/** Attempts on local sockets of other programs, such as a container engine, a key agent or a message bus. */
import { execFile, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import type { Rules } from '@sluice/testkit/rules'
import { CANARY, type InBench } from '@sluice/testkit/sandbox-rules/bench'
import { expect } from 'vitest'

/** What an attempt sends, so that other programs that connect meanwhile, such as a daemon that looks for sockets, are not counted. */
const KNOCKED = randomUUID()
const KNOCK = `use IO::Socket::UNIX; for my $at (@ARGV) { my $s = IO::Socket::UNIX->new(Peer => $at) or next; print $s '${KNOCKED}' }`
const ABSTRACT = `use Socket; socket my $s, AF_UNIX, SOCK_STREAM, 0; connect $s, pack('S a*', AF_UNIX, "\\0$ARGV[0]") and print 'reached'`
const ABSTRACT_PACKET = `use Socket; socket my $s, AF_UNIX, SOCK_DGRAM, 0; send($s, 'x', 0, pack('S a*', AF_UNIX, "\\0$ARGV[0]")) and print 'reached'`
const LISTEN = `use Socket; my ($kind, $name) = @ARGV; socket my $s, AF_UNIX, $kind eq 'stream' ? SOCK_STREAM : SOCK_DGRAM, 0;
  bind $s, pack('S a*', AF_UNIX, "\\0$name") or die; listen $s, 5 if $kind eq 'stream'; $| = 1; print 'ready'; sleep 30`

/** Folders in which running services keep sockets and secrets. The user of the tests cannot write to all of them. */
const RUNTIME_FOLDERS = [
  '/run',
  '/var/run',
  '/run/lock',
  '/run/secrets',
  process.env.XDG_RUNTIME_DIR ?? `/run/user/${process.getuid?.() ?? 0}`,
]

/** Sockets that most machines have; none may answer. */
const WELL_KNOWN = [
  '/var/run/docker.sock',
  '/run/docker.sock',
  '/run/containerd/containerd.sock',
  '/run/podman/podman.sock',
  '/run/dbus/system_bus_socket',
  '/run/systemd/private',
  '/run/systemd/journal/stdout',
  '/run/udev/control',
  '/run/snapd.socket',
  '/dev/log',
]

/**
 * Creates a folder in each runtime folder that this user can write to, and removes it afterwards. A runtime folder that
 * did not exist before is removed only when it is empty: the suite of another backend may use it at the same time.
 */
async function inRuntimeFolders(use: (folders: readonly string[]) => Promise<void>): Promise<void> {
  const madeParents: string[] = []
  const folders = RUNTIME_FOLDERS.flatMap((parent) => {
    try {
      const first = mkdirSync(parent, { recursive: true })
      if (first !== undefined) madeParents.push(...pathsFrom(parent, first))
      const folder = mkdtempSync(join(parent, 'sluice-escape-'))
      chmodSync(folder, 0o755)
      return [folder]
    } catch {
      return []
    }
  })
  try {
    await use(folders)
  } finally {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    for (const parent of madeParents) removeIfEmpty(parent)
  }
}

/** Lists `folder` and its parents up to `first`, deepest first. */
function pathsFrom(folder: string, first: string): string[] {
  return folder === first ? [folder] : [folder, ...pathsFrom(dirname(folder), first)]
}

function removeIfEmpty(folder: string): void {
  try {
    rmdirSync(folder)
  } catch {
    // Another suite still uses the folder, or has removed it already.
  }
}

const ENGINE = '/run/docker.sock'
/** Why nothing can listen at the path of an engine: one runs there, the suite of another backend does, or this user cannot write to /run. */
const NOT_FREE = ['EADDRINUSE', 'EACCES', 'EROFS', 'EPERM', 'ENOENT']

/** How long a program that has connected may keep its connection open once the attempts have ended. */
const OPEN_MS_MAX = 1000

/** Returns the number of connections at a socket in which an attempt has sent `KNOCKED`. */
async function connectionsAt(path: string, use: () => Promise<unknown>): Promise<number> {
  let count = 0
  const open = new Set<Socket>()
  const server = createServer((socket) => {
    open.add(socket)
    let text = ''
    socket.on('data', (data) => {
      text += data
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      open.delete(socket)
      if (text.includes(KNOCKED)) count++
    })
  })
  const listening = once(server, 'listening')
  server.listen(path)
  await listening
  try {
    await use()
    await new Promise((resolve) => setTimeout(resolve, 20))
    const closed = [...open].map((socket) => once(socket, 'close'))
    const destroyAll = () => {
      for (const socket of open) socket.destroy()
    }
    const end = setTimeout(destroyAll, OPEN_MS_MAX)
    await Promise.all(closed)
    clearTimeout(end)
  } finally {
    for (const socket of open) socket.destroy()
    server.close()
  }
  return count
}

async function withAbstract(kind: 'stream' | 'packet', use: (name: string) => Promise<void>): Promise<void> {
  const name = `sluice-escape-${process.pid}-${Math.random()}`
  const listener = spawn('perl', ['-e', LISTEN, kind, name], { stdio: ['ignore', 'pipe', 'ignore'] })
  await once(listener.stdout, 'data')
  try {
    await use(name)
  } finally {
    listener.kill('SIGKILL')
  }
}

export const socketEscapes = (inBench: InBench): Rules => ({
  'sockets: none is reachable by path': inBench(async ({ runPerl, outside }) => {
    for (const folder of outside) {
      const path = join(folder, 'docker.sock')
      expect(await connectionsAt(path, () => runPerl(KNOCK, [path, `/proc/self/root${path}`, `/proc/1/root${path}`]))).toBe(0)
    }
  }),
  'sockets: none is reachable by link': inBench(async ({ run, outside }) => {
    const path = join(outside[0] ?? '', 's')
    const script = `ln -s "$1" s; perl -e '${KNOCK.replaceAll("'", '"')}' s ./s; ln "$1" h; perl -e '${KNOCK.replaceAll("'", '"')}' h`
    expect(await connectionsAt(path, () => run(script, { args: [path] }))).toBe(0)
  }),
  'sockets: the key agent is unreachable': inBench(async ({ execute, outside }) => {
    const agent = join(outside[1] ?? '', 'agent')
    const given = { env: { SSH_AUTH_SOCK: agent, DBUS_SESSION_BUS_ADDRESS: `unix:path=${agent}` } }
    expect(await connectionsAt(agent, () => execute('perl', ['-e', `@ARGV = ($ENV{SSH_AUTH_SOCK}); ${KNOCK}`], given))).toBe(0)
  }),
  'sockets: the usual system services are unreachable': inBench(async ({ runPerl }) => {
    const script = `use IO::Socket::UNIX; for my $at (@ARGV) { for my $type (SOCK_STREAM, SOCK_DGRAM) { print "$at\\n" if IO::Socket::UNIX->new(Peer => $at, Type => $type) } }`
    expect((await runPerl(script, WELL_KNOWN)).stdout).toBe('')
  }),
  'sockets: none in /run is reachable': inBench(async ({ runPerl }) => {
    await inRuntimeFolders(async (folders) => {
      for (const folder of folders) {
        const path = join(folder, 's')
        expect(await connectionsAt(path, () => runPerl(KNOCK, [path, `/proc/self/root${path}`, path.replace('/run/', '/var/run/')]))).toBe(
          0,
        )
      }
    })
  }),
  'sockets: a container engine in /run is unreachable': inBench(async ({ runPerl }) => {
    const count = connectionsAt(ENGINE, () => runPerl(KNOCK, [ENGINE, `/var${ENGINE}`])).catch((error: NodeJS.ErrnoException) => {
      if (NOT_FREE.includes(error.code ?? '')) return 0
      throw error
    })
    expect(await count).toBe(0)
  }),
  'outside files: none in /run is read or changed': inBench(async ({ run }) => {
    await inRuntimeFolders(async (folders) => {
      for (const folder of folders) writeFileSync(join(folder, 'canary'), CANARY, { mode: 0o666 })
      const script =
        'for each; do cat "$each/canary" "/var$each/canary" "/proc/self/root$each/canary"; echo changed > "$each/canary"; : > "$each/new"; done'
      const { stdout, stderr } = await run(script, { args: folders })
      expect(stdout + stderr).not.toContain(CANARY)
      for (const folder of folders) {
        expect(readFileSync(join(folder, 'canary'), 'utf8')).toBe(CANARY)
        expect(existsSync(join(folder, 'new'))).toBe(false)
      }
    })
  }),
  'outside files: none in /run is visible, even with network access': inBench(async ({ run }) => {
    await inRuntimeFolders(async (folders) => {
      for (const folder of folders) writeFileSync(join(folder, 'canary'), CANARY)
      const { stdout } = await run('for each; do cat "$each/canary"; done', { args: folders, policy: { network: true } })
      expect(stdout).not.toContain(CANARY)
    })
  }),
  'sockets: none in /run is reachable, even with network access': inBench(async ({ runPerl }) => {
    await inRuntimeFolders(async (folders) => {
      for (const folder of folders) {
        const path = join(folder, 's')
        expect(await connectionsAt(path, () => runPerl(KNOCK, [path], { network: true }))).toBe(0)
      }
    })
  }),
  'sockets: none is reachable by abstract name': inBench(async ({ runPerl }) => {
    await withAbstract('stream', async (name) => expect((await runPerl(ABSTRACT, [name])).stdout).toBe(''))
  }),
  'sockets: no packet reaches an abstract name': inBench(async ({ runPerl }) => {
    await withAbstract('packet', async (name) => expect((await runPerl(ABSTRACT_PACKET, [name])).stdout).toBe(''))
  }),
  'sockets: abstract names are invisible': inBench(async ({ run }) => {
    await withAbstract('stream', async (name) => expect((await run('cat /proc/net/unix')).stdout).not.toContain(name))
  }),
  'sockets: a socket left in the workspace is dead': inBench(async ({ runPerl, workspace }) => {
    // A command may bind a socket in its workspace, but the socket must end with the command.
    const path = join(workspace, 'left')
    await runPerl(`use IO::Socket::UNIX; IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1)`, [path])
    const { promise, resolve } = Promise.withResolvers<boolean>()
    execFile('perl', ['-e', `use IO::Socket::UNIX; exit(IO::Socket::UNIX->new(Peer => $ARGV[0]) ? 0 : 1)`, path], (error) =>
      resolve(!error),
    )
    expect(await promise).toBe(false)
  }),
})

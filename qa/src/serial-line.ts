/** A serial line for tests, made by Debian's socat: a pseudo-terminal on one side, bytes of this process on the other. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { constants } from 'node:fs'
import { access, mkdtemp, open, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type DebianProgram, debianProgram, type MissingProgram } from './debian-program.ts'

/** A pseudo-terminal whose other end is this process. */
export interface SerialLine {
  /** The device node, such as /dev/pts/7. */
  readonly path: string
  write(bytes: Uint8Array): Promise<void>
  onData(callback: (bytes: Uint8Array) => void): () => void
  /** Removes the line like a pulled cable: programs that have it open are disconnected. May be called twice. */
  unplug(): Promise<void>
}

const START_MS_MAX = 30_000
const LOOK_AGAIN_MS = 5

/** Finds or downloads socat. */
export const findSocat = (): Promise<DebianProgram | MissingProgram> => debianProgram({ packages: ['socat'], program: 'usr/bin/socat' })

/** Creates a line; throws if socat does not start in time. */
export async function startSerialLine(socat: DebianProgram): Promise<SerialLine> {
  const folder = await mkdtemp(join(tmpdir(), 'serial-line-'))
  const link = join(folder, 'port')
  const child = spawn(socat.path, [`PTY,link=${link},raw,echo=0`, 'STDIO'], {
    env: { ...process.env, ...socat.env },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const exited = once(child, 'exit').catch(() => undefined)
  const killAtExit = (): void => void child.kill('SIGKILL')
  process.once('exit', killAtExit)
  child.stdin.on('error', () => undefined)
  const unplug = async (): Promise<void> => {
    process.removeListener('exit', killAtExit)
    child.kill('SIGKILL')
    await exited
    await rm(folder, { recursive: true, force: true })
  }
  const untilMs = Date.now() + START_MS_MAX
  while (!(await isThere(link))) {
    if (Date.now() > untilMs || child.exitCode !== null) {
      await unplug()
      throw new Error('socat did not create a pseudo-terminal')
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_AGAIN_MS))
  }
  // A pseudo-terminal ends when its last user closes it, but a real line stays while its cable is plugged in.
  const user = await open(link, constants.O_RDWR | constants.O_NOCTTY)
  return {
    path: await realpath(link),
    write: (bytes) => new Promise((resolve, reject) => child.stdin.write(bytes, (error) => (error ? reject(error) : resolve()))),
    onData(callback) {
      child.stdout.on('data', callback)
      return () => void child.stdout.off('data', callback)
    },
    async unplug() {
      await unplug()
      await user.close().catch(() => undefined)
    },
  }
}

const isThere = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

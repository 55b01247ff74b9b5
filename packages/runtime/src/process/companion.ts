/** Starts a feature's own module in a process beside the daemon, with a channel and nothing else of the daemon's. */
import type { ChildProcess } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { AppError, type Companion, type CompanionRequest, errorText } from '@sluice/sdk'

const MESSAGE_BYTES_MAX = 64 * 1024
/** Sent, and not yet taken by the kernel: a companion that does not read. */
const MESSAGES_WAITING_MAX = 64
/** Between the end of the channel and SIGKILL. */
const KILL_AFTER_MS = 2000

export async function startCompanion({ module, mark, init, onMessage, onEnd }: CompanionRequest): Promise<Companion> {
  const child = await start(fileURLToPath(module), mark)
  const { pid } = child
  if (pid === undefined) throw new AppError('internal', 'a companion was started without an id')
  const ended = Promise.withResolvers<void>()
  let waiting = 0
  let isOver = false
  const end = (why: string) => {
    if (isOver) return
    isOver = true
    ended.resolve()
    onEnd(why)
  }
  child.on('error', (error) => end(errorText(error)))
  child.once('exit', (code, signal) => end(signal ? `it was ended by ${signal}` : `it ended with code ${code}`))
  child.on('message', onMessage)
  // It must not keep a command running that has nothing else to do
  child.unref()
  child.channel?.unref()

  const send = (message: unknown): void => {
    if (isOver || !child.connected) throw new AppError('unavailable', 'the companion has ended')
    if (waiting >= MESSAGES_WAITING_MAX) throw new AppError('unavailable', 'the companion does not answer')
    if (serialize(message).byteLength > MESSAGE_BYTES_MAX) throw new AppError('too_large', 'the message to the companion is too large')
    waiting++
    // What could not be sent is followed by the end of the companion, which is told
    child.send(message as object, () => void waiting--)
  }
  const close = async (): Promise<void> => {
    if (child.connected) child.disconnect()
    const kill = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS)
    await ended.promise
    clearTimeout(kill)
  }
  send(init)
  return { pid, send, close }
}

/** Resolves once it runs. */
async function start(file: string, mark: string): Promise<ChildProcess> {
  const { fork } = await import('node:child_process')
  const { promise, resolve, reject } = Promise.withResolvers<ChildProcess>()
  try {
    const child = fork(file, [mark], {
      cwd: dirname(file),
      env: {},
      execArgv: [],
      serialization: 'advanced',
      // A pipe that nobody reads would hold it up, and the daemon's own are not its business
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      // What is sent to the daemon's process group does not reach it: it ends in its own way
      detached: true,
    })
    child.once('error', reject)
    child.once('spawn', () => resolve(child))
    return await promise
  } catch (cause) {
    throw new AppError('unavailable', `a companion could not be started: ${errorText(cause)}`, { cause })
  }
}

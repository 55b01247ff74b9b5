/** `Host.companion`: runs a feature's own module in a child process that shares nothing with the daemon but a message channel. */
import type { ChildProcess } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { serialize } from 'node:v8'
import { AppError, type Companion, type CompanionRequest, errorText } from '@sluice/sdk'

const MESSAGE_BYTES_MAX = 64 * 1024
/** The largest number of messages that the kernel has not taken yet: beyond it, the companion does not read. */
const MESSAGES_WAITING_MAX = 64
/** The time between the end of the channel and SIGKILL. */
const KILL_AFTER_MS = 2000

export async function startCompanion({ module, mark, init, onMessage, onEnd }: CompanionRequest): Promise<Companion> {
  const child = await start(fileURLToPath(module), mark)
  const { pid } = child
  if (pid === undefined) throw new AppError('internal', 'a companion was started without an id')
  const ended = Promise.withResolvers<void>()
  let waiting = 0
  let hasEnded = false
  const end = (why: string) => {
    if (hasEnded) return
    hasEnded = true
    ended.resolve()
    onEnd(why)
  }
  child.on('error', (error) => end(errorText(error)))
  child.once('exit', (code, signal) => end(signal ? `it was ended by ${signal}` : `it ended with code ${code}`))
  child.on('message', onMessage)
  // A companion does not keep a command running that has nothing else to do.
  child.unref()
  child.channel?.unref()

  const send = (message: unknown): void => {
    if (hasEnded || !child.connected) throw new AppError('unavailable', 'the companion has ended')
    if (waiting >= MESSAGES_WAITING_MAX) throw new AppError('unavailable', 'the companion does not answer')
    if (serialize(message).byteLength > MESSAGE_BYTES_MAX) throw new AppError('too_large', 'the message to the companion is too large')
    waiting++
    // A message that cannot be sent needs no handling: the companion has ended, and `onEnd` reports that.
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

/** Resolves once the process runs. */
async function start(file: string, mark: string): Promise<ChildProcess> {
  const { fork } = await import('node:child_process')
  const { promise, resolve, reject } = Promise.withResolvers<ChildProcess>()
  try {
    const child = fork(file, [mark], {
      cwd: dirname(file),
      env: {},
      execArgv: [],
      serialization: 'advanced',
      // A pipe that no reader empties would block the companion, and the daemon's own streams are not for it.
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
      // Signals to the daemon's process group do not reach it: it ends when its channel does.
      detached: true,
    })
    child.once('error', reject)
    child.once('spawn', () => resolve(child))
    return await promise
  } catch (cause) {
    throw new AppError('unavailable', `a companion could not be started: ${errorText(cause)}`, { cause })
  }
}

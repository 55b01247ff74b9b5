/** Runs one process from start to end, together with every process that it starts in its process group. */
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import type { Writable } from 'node:stream'
import { endsWithin, StreamEnds } from '@sluice/kit'
import { AppError, type Clock, type ProcessCommand, type RunBare, type SpawnRequest, type SpawnResult } from '@sluice/sdk'
import type { NoteCommand } from './left-commands.ts'
import { stopGroup } from './process-group.ts'

/** The wait after SIGKILL: a process that has not ended by then hangs in the kernel. */
const GIVE_UP_AFTER_MS = 5_000
/** The longest wait for the last output, which a process that left the group may hold open. */
const PIPE_DRAIN_MS = 250
/** The turns of the event loop after that wait, for pipes that have more on each. */
const LATE_TURNS_MAX = 32

const BARE_TIMEOUT_MS = 60_000
const BARE_OUTPUT_BYTES_MAX = 65_536

/**
 * Runs programs that Sluice itself needs without a sandbox, such as the client of a container engine. The time limit is a minute
 * unless `timeoutMs` is another; it may be infinite.
 */
export const createRunBare =
  (clock: Clock, timeoutMs = BARE_TIMEOUT_MS): RunBare =>
  (command, signal) =>
    runProcess(
      command,
      {
        ...command,
        policy: { writable: [], network: true },
        timeoutMs,
        outputBytesMax: BARE_OUTPUT_BYTES_MAX,
        signal,
      },
      clock,
    )

/**
 * Runs `command` until it ends, times out or is aborted, and then stops the rest of its process group. A process that left
 * the group may run on, but the caller does not wait for it.
 */
export async function runProcess(
  command: ProcessCommand,
  request: SpawnRequest,
  clock: Clock,
  noteCommand?: NoteCommand,
): Promise<Omit<SpawnResult, 'sandbox'>> {
  const { onStart } = request
  const note = noteCommand?.()
  const child = await start({ ...command, env: { ...command.env, ...note?.env } }, onStart !== undefined || request.input !== undefined)
  const { pid, stdin, stdout, stderr } = child
  if (pid === undefined || !stdout || !stderr) throw new AppError('internal', `'${command.file}' was started without an id`)
  const removeNote = note?.started(pid)

  const out = new StreamEnds(request.outputBytesMax)
  const err = new StreamEnds(request.outputBytesMax)
  const reportOut = textReporter((text) => request.onOutput?.('stdout', text))
  const reportErr = textReporter((text) => request.onOutput?.('stderr', text))
  let reads = 0
  const keep = (ends: StreamEnds, report: typeof reportOut) => (chunk: Buffer) => {
    reads++
    ends.push(chunk)
    report(chunk)
  }
  if (!onStart) stdout.on('data', keep(out, reportOut))
  stderr.on('data', keep(err, reportErr))
  // A program that does not read its input makes writing it fail, which is not an error of the command.
  stdin?.on('error', () => undefined)
  if (onStart && stdin) onStart({ output: stdout, write: (text) => written(stdin, text) })
  else stdin?.end(request.input)

  const exited = Promise.withResolvers<{ exitCode: number | null; signal: string | null }>()
  const closed = Promise.withResolvers<void>()
  child.once('exit', (exitCode, signal) => exited.resolve({ exitCode, signal }))
  child.once('close', () => closed.resolve())

  const ended = new AbortController()
  let stopping: Promise<void> | undefined
  const stop = (): Promise<void> => {
    stopping ??= stopGroup(pid, clock).then(() => {
      void clock
        .sleep(GIVE_UP_AFTER_MS, ended.signal)
        .then(() => exited.reject(new AppError('unavailable', 'a process could not be ended')))
    })
    return stopping
  }
  let timedOut = false
  if (request.timeoutMs !== Number.POSITIVE_INFINITY)
    void clock.sleep(request.timeoutMs, ended.signal).then(() => {
      if (ended.signal.aborted) return
      timedOut = true
      void stop()
    })
  request.signal.addEventListener('abort', stop, { once: true, signal: ended.signal })
  if (request.signal.aborted) void stop()

  try {
    const exit = await exited.promise
    ended.abort()
    await stop()
    await waitForOutput(closed.promise, clock, () => reads)
    reportOut()
    reportErr()
    return { ...exit, timedOut, stdout: out.text(), stderr: err.text(), truncated: out.isCut || err.isCut }
  } finally {
    ended.abort()
    stdout.destroy()
    stderr.destroy()
    child.unref()
    removeNote?.()
  }
}

/** Reports the text of each chunk; a character that two chunks share comes with the second. A call without a chunk ends the stream. */
function textReporter(report: (text: string) => void): (chunk?: Buffer) => void {
  const decoder = new TextDecoder()
  return (chunk) => {
    const text = decoder.decode(chunk, { stream: chunk !== undefined })
    if (text !== '') report(text)
  }
}

/** Resolves once the process runs. */
async function start(command: ProcessCommand, hasInput: boolean): Promise<ChildProcess> {
  const [{ spawn }, { INHERITED, standIns }] = await Promise.all([import('node:child_process'), import('./inherited-descriptors.ts')])
  const { promise, resolve, reject } = Promise.withResolvers<ChildProcess>()
  let nothing: number | undefined
  try {
    if (INHERITED.length > 0) nothing = openSync('/dev/null', 'r')
    const child = spawn(command.file, command.args, {
      cwd: command.cwd,
      env: command.env,
      detached: true,
      stdio: [hasInput ? 'pipe' : 'ignore', 'pipe', 'pipe', ...(nothing === undefined ? [] : standIns(nothing))],
    })
    child.on('error', reject)
    child.once('spawn', () => resolve(child))
    return await promise
  } catch (error) {
    throw startError(command, error)
  } finally {
    if (nothing !== undefined) closeSync(nothing)
  }
}

function startError({ file }: ProcessCommand, cause: unknown): AppError {
  switch ((cause as NodeJS.ErrnoException).code) {
    case 'ENOENT':
      return new AppError('not_found', `the program '${file}' does not exist`, { cause })
    case 'EACCES':
    case 'EPERM':
      return new AppError('forbidden', `'${file}' may not be run`, { cause })
    case 'E2BIG':
    case 'ERR_INVALID_ARG_VALUE':
      return new AppError('invalid_request', `'${file}' cannot be given these arguments`, { cause })
    default:
      return new AppError('unavailable', `'${file}' could not be started`, { cause })
  }
}

/** Writes to a program. Resolves when it takes more, or no longer reads. */
function written(stdin: Writable, text: string): Promise<void> {
  if (stdin.destroyed || stdin.write(text)) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      stdin.off('drain', done).off('close', done)
      resolve()
    }
    stdin.on('drain', done).on('close', done)
  })
}

/** Waits until the output streams are closed, but no longer than a process outside the group may delay it. */
async function waitForOutput(closed: Promise<void>, clock: Clock, reads: () => number): Promise<void> {
  if (await endsWithin(closed, PIPE_DRAIN_MS, clock)) return
  // Where this process got no processor meanwhile, the time is over before the pipes were read. Each turn of the event loop reads them, but
  // the first one may be half over.
  for (let turns = 0, idle = 0, before = reads(); turns < LATE_TURNS_MAX && idle < 2; turns++) {
    await Promise.race([closed, new Promise(setImmediate)])
    idle = reads() === before ? idle + 1 : 0
    before = reads()
  }
}

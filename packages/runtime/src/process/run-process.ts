/** One process from start to end, with everything it started in its process group. */
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { AppError, type Clock, type ProcessCommand, type SpawnRequest, type SpawnResult } from '@sluice/sdk'
import { createOutputHead } from './output-head.ts'
import { stopGroup } from './process-group.ts'

/** After SIGKILL: a process that is there still hangs in the kernel. */
const GIVE_UP_AFTER_MS = 5_000
/** How long a process that left the group may still hold our pipes. */
const PIPE_DRAIN_MS = 250

/**
 * Runs `command` to its end; then, or on time-out or abort, what there is of its group is stopped. A process that left
 * the group may live on, but no longer holds us.
 */
export async function runProcess(command: ProcessCommand, request: SpawnRequest, clock: Clock): Promise<Omit<SpawnResult, 'sandbox'>> {
  const child = await start(command, request.input !== undefined)
  const { pid, stdout, stderr } = child
  if (pid === undefined || !stdout || !stderr) throw new AppError('internal', `'${command.file}' was started without an id`)

  const out = createOutputHead(request.outputBytesMax, (text) => request.onOutput?.('stdout', text))
  const err = createOutputHead(request.outputBytesMax, (text) => request.onOutput?.('stderr', text))
  stdout.on('data', out.push)
  stderr.on('data', err.push)
  // a program need not read its input
  child.stdin?.on('error', () => undefined)
  child.stdin?.end(request.input)

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
    await drained(closed.promise, clock)
    return { ...exit, timedOut, stdout: out.text(), stderr: err.text(), truncated: out.truncated || err.truncated }
  } finally {
    ended.abort()
    stdout.destroy()
    stderr.destroy()
    child.unref()
  }
}

/** Resolves once it runs. */
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
      return new AppError('not_found', `there is no program '${file}'`, { cause })
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

/** Waits for the last of the output, unless somebody outside the group holds the pipe. */
async function drained(closed: Promise<void>, clock: Clock): Promise<void> {
  const done = new AbortController()
  await Promise.race([closed, clock.sleep(PIPE_DRAIN_MS, done.signal)])
  done.abort()
}

/** Runs commands of features for callers elsewhere, which get the output line by line, answer questions and may abort. */
import { randomUUID } from 'node:crypto'
import { AppError, type Command, type CommandContext, ERRORS, type Logger, type Services } from '@sluice/sdk'
import type { CommandFrame, CommandInput } from './command-frames.ts'
import type { Snapshot } from './snapshot.ts'

/** The number of commands that run at once. */
export const COMMANDS_MAX = 16

export interface CommandRunsOptions {
  /** Returns the snapshot in force. */
  snapshot(): Snapshot
  /** Keeps the features of the snapshot in force open until the result is called. */
  pin(): () => void
  readonly addToConfig: CommandContext['addToConfig']
  readonly setInConfig: CommandContext['setInConfig']
  readonly audit: Services['audit']
  readonly log: Logger
}

export interface CommandRequest {
  /** The words of the command and its arguments, as typed. */
  readonly words: readonly string[]
  /** See `CommandContext.cwd`. */
  readonly cwd: string
  readonly json: boolean
  /** See `CommandContext.by`. */
  readonly by: string
  /** True: the caller answers questions. */
  readonly asks: boolean
  /** Aborts when the caller goes away. */
  readonly signal: AbortSignal
}

type Send = (frame: CommandFrame) => void

export class CommandRuns {
  readonly #options: CommandRunsOptions
  readonly #running = new Map<string, RunningCommand>()

  constructor(options: CommandRunsOptions) {
    this.#options = options
  }

  /** Runs the command and sends its lines; the last one says how it ended. Never rejects. */
  async run({ words, signal, ...caller }: CommandRequest, send: Send): Promise<void> {
    const id = randomUUID()
    const release = this.#options.pin()
    const running = new RunningCommand(send)
    if (signal.aborted) running.abort()
    signal.addEventListener('abort', running.abort, { once: true })
    try {
      if (this.#running.size >= COMMANDS_MAX) throw new AppError('unavailable', `${COMMANDS_MAX} commands of features run already`)
      this.#running.set(id, running)
      const command = findCommand(this.#options.snapshot(), words)
      send({ type: 'started', id })
      const args = words.slice(command.name.split(' ').length)
      const code = await command.run({ ...this.#contextFor(caller, running), args })
      send({ type: 'exit', code })
    } catch (error) {
      send(this.#errorFrame(words, error))
    } finally {
      signal.removeEventListener('abort', running.abort)
      this.#running.delete(id)
      release()
    }
  }

  /** Gives a running command what its caller sends. Throws `not_found` once the command has ended. */
  receive(id: string, input: CommandInput): void {
    const running = this.#running.get(id)
    if (!running) throw new AppError('not_found', 'There is no such command: it may have ended')
    if (input.type === 'answer') running.answer(input.text ?? undefined)
    else running.abort()
  }

  #contextFor(
    { cwd, json, by, asks }: Pick<CommandRequest, 'cwd' | 'json' | 'by' | 'asks'>,
    { print, warn, ask, signal }: RunningCommand,
  ): Omit<CommandContext, 'args'> {
    const record = (keys: readonly string[]) => this.#options.audit({ kind: 'config_changed', by, detail: { keys } })
    const addToConfig: CommandContext['addToConfig'] = async (addition) => {
      await this.#options.addToConfig(addition)
      await record([addition.list, ...Object.keys(addition.set ?? {})])
    }
    const setInConfig: CommandContext['setInConfig'] = async (values) => {
      await this.#options.setInConfig(values)
      await record(Object.keys(values))
    }
    return { cwd, json, by, print, warn, signal, addToConfig, setInConfig, ...(asks && { ask }) }
  }

  #errorFrame(words: readonly string[], error: unknown): CommandFrame {
    if (error instanceof AppError) return { type: 'error', code: error.code, message: error.message, fields: error.fields }
    this.#options.log.error('command failed', { command: words.join(' '), error })
    return { type: 'error', code: 'internal', message: `${ERRORS.internal.title}; the log has the cause`, fields: {} }
  }
}

class RunningCommand {
  readonly #send: Send
  readonly #aborted = new AbortController()
  /** The questions that wait for an answer, the oldest first. */
  readonly #questions: ((answer: string | undefined) => void)[] = []

  constructor(send: Send) {
    this.#send = send
  }

  get signal(): AbortSignal {
    return this.#aborted.signal
  }

  readonly print = (line: string): void => this.#send({ type: 'print', line })
  readonly warn = (line: string): void => this.#send({ type: 'warn', line })

  readonly ask = (text: string): Promise<string | undefined> =>
    new Promise((resolve) => {
      if (this.signal.aborted) return resolve(undefined)
      this.#questions.push(resolve)
      this.#send({ type: 'question', text })
    })

  answer(text: string | undefined): void {
    this.#questions.shift()?.(text)
  }

  readonly abort = (): void => {
    this.#aborted.abort()
    for (const resolve of this.#questions.splice(0)) resolve(undefined)
  }
}

/** Returns the command of a feature that the words begin with. Throws `unavailable` if no feature that is ready has it. */
function findCommand({ instances }: Snapshot, words: readonly string[]): Command {
  const commands = instances.flatMap(({ parts }) => parts.commands ?? [])
  const found = commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
  if (found) return found
  throw new AppError('unavailable', `no feature that is ready has the command '${words.join(' ')}'; see 'sluice features'`)
}

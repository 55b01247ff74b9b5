/**
 * Runs the patterns of a model over file names and texts, in a thread of its own: some patterns take exponential time, and ending the
 * thread is the only way to stop them.
 */
import { Worker } from 'node:worker_threads'
import { AppError, errorText } from '@sluice/sdk'
import type { IgnoreRule } from './ignore-rules.ts'

export interface Match {
  /** The line, counted from 1. */
  readonly line: number
  /** The line, or of a long one the part around the match. */
  readonly text: string
  /** The first and the last byte of the part in the text of the file; absent for a whole line. */
  readonly bytes?: readonly [first: number, last: number]
}

export interface Matches {
  readonly matches: readonly Match[]
  /** Whether there are more than were asked for. */
  readonly more: boolean
}

/** The expressions of one search; `lines` is absent for a search by name. */
export interface Patterns {
  readonly names?: string | undefined
  readonly lines?: { readonly source: string; readonly flags: string } | undefined
}

const EXCERPT = { longerThan: 400, before: 100, length: 300 }
/** Far above what a file of the largest size needs. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 512, maxYoungGenerationSizeMb: 32 }

const SEARCHER = `
  const { parentPort, workerData: { names, lines, excerpt } } = require('node:worker_threads')
  const name = names === undefined ? undefined : new RegExp(names)
  const expression = lines === undefined ? undefined : new RegExp(lines.source, lines.flags)
  const decoder = new TextDecoder()

  function search(bytes, max) {
    const text = decoder.decode(bytes)
    const matches = []
    let counted = 0
    let countedBytes = 0
    const byteAt = (index) => {
      countedBytes += Buffer.byteLength(text.slice(counted, index))
      counted = index
      return countedBytes
    }
    let line = 0
    for (let at = 0; at < text.length; ) {
      line++
      const next = text.indexOf('\\n', at)
      const end = next < 0 ? text.length : next
      const content = text.slice(at, text[end - 1] === '\\r' ? end - 1 : end)
      const found = expression.exec(content)
      if (found && matches.length === max) return { matches, more: true }
      if (found && content.length <= excerpt.longerThan) matches.push({ line, text: content })
      else if (found) {
        const from = Math.max(0, found.index - excerpt.before)
        const part = content.slice(from, from + excerpt.length).toWellFormed()
        const first = byteAt(at + from)
        matches.push({ line, text: part, bytes: [first, first + Buffer.byteLength(part) - 1] })
      }
      at = end + 1
    }
    return { matches, more: false }
  }

  const expressions = new Map()
  function ignoring(source) {
    if (!expressions.has(source)) {
      let made
      try { made = new RegExp(source) } catch {}
      expressions.set(source, made)
    }
    return expressions.get(source)
  }

  parentPort.on('message', ({ paths, rules, bytes, max }) => {
    if (rules) {
      const last = rules.toReversed()
      parentPort.postMessage(paths.filter((path) => last.find(({ source }) => ignoring(source)?.test(path))?.keeps ?? true))
    } else parentPort.postMessage(paths ? paths.filter((path) => name === undefined || name.test(path)) : search(bytes, max))
  })
`

export class SearchThread implements AsyncDisposable {
  readonly #patterns: Patterns
  #worker: Worker | undefined
  #job: PromiseWithResolvers<unknown> | undefined
  #failure: AppError | undefined

  /** The thread starts with the first question, and ends when the signal aborts. */
  constructor(patterns: Patterns, signal: AbortSignal) {
    this.#patterns = patterns
    const end = () => {
      this.#fail(new AppError('aborted', 'The search was ended'))
      void this.#worker?.terminate()
    }
    if (signal.aborted) end()
    else signal.addEventListener('abort', end, { once: true })
  }

  /** Resolves to the paths that the pattern for names matches. Rejects as `search` does. */
  async filter(paths: readonly string[]): Promise<readonly string[]> {
    return (await this.#ask({ paths })) as readonly string[]
  }

  /** Resolves to the paths that the rules keep. A rule that is not a valid expression does not match. */
  async keep(paths: readonly string[], rules: readonly IgnoreRule[]): Promise<readonly string[]> {
    return (await this.#ask({ paths, rules })) as readonly string[]
  }

  /** Resolves to the first matching lines. Rejects with `invalid_request` for a wrong pattern, and with `aborted` once the thread has ended. */
  async search(bytes: Uint8Array, max: number): Promise<Matches> {
    return (await this.#ask({ bytes, max })) as Matches
  }

  /** Throws once the thread has ended. */
  check(): void {
    if (this.#failure) throw this.#failure
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate()
  }

  async #ask(message: object): Promise<unknown> {
    this.check()
    this.#job = Promise.withResolvers()
    this.#worker ??= this.#start()
    this.#worker.postMessage(message)
    return this.#job.promise
  }

  #start(): Worker {
    const worker = new Worker(SEARCHER, {
      eval: true,
      workerData: { ...this.#patterns, excerpt: EXCERPT },
      resourceLimits: RESOURCE_LIMITS,
      // The thread does not see the daemon's environment.
      env: {},
      argv: [],
      execArgv: [],
    })
    worker.on('message', (answer) => this.#job?.resolve(answer))
    worker.on('error', (error) => this.#fail(new AppError('invalid_request', `The pattern cannot be used: ${errorText(error)}`)))
    worker.on('exit', () => this.#fail(new AppError('aborted', 'The search was ended')))
    return worker
  }

  #fail(failure: AppError): void {
    this.#failure ??= failure
    this.#job?.reject(this.#failure)
  }
}

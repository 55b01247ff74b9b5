/** A driver that selects, with the first action, the first of several drivers that works on this machine. */
import { untilAborted } from '@sluice/kit'
import { AppError, errorText, type Finding, type Logger, type ToolContext } from '@sluice/sdk'
import type { Action } from './actions.ts'
import type { Driver, OptionalDriver } from './backend.ts'

export interface Candidate {
  /** The value of `[browser] backend`. */
  readonly name: string
  load(): Promise<OptionalDriver>
}

interface Selection {
  readonly name: string
  readonly driver: Driver
  /** For each earlier candidate, the reason why it was skipped. */
  readonly skipped: readonly string[]
}

const FIX = 'install the missing program of one backend; native needs only Chromium'

export class FirstUsable implements Driver {
  readonly #candidates: readonly Candidate[]
  readonly #log: Logger
  readonly #closing = new AbortController()
  #selecting: Promise<Selection> | undefined

  constructor(candidates: readonly Candidate[], log: Logger) {
    this.#candidates = candidates
    this.#log = log
  }

  async run(action: Action, call: ToolContext): Promise<string> {
    const { driver } = await untilAborted(this.#select(), call.signal, 'The action was aborted')
    return driver.run(action, call)
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    const selection = await untilAborted(this.#select(), signal, 'The check was aborted').catch(errorText)
    if (typeof selection === 'string') return [{ status: 'fail', detail: selection, fix: FIX }]
    const { name, driver, skipped } = selection
    const fix = `set backend = "${name}" under [browser], or fix the problem`
    const notes = skipped.map((reason): Finding => ({ status: 'warn', detail: `${reason}; ${name} is used instead`, fix }))
    return [...notes, ...(await driver.check(signal))]
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const selection = await this.#selecting?.catch(() => undefined)
    this.#selecting = undefined
    await selection?.driver.close()
  }

  /** Selects once. After a failure the next action selects again, because a program may have been installed meanwhile. */
  #select(): Promise<Selection> {
    if (this.#selecting) return this.#selecting
    const selecting = this.#firstUsable(this.#closing.signal)
    this.#selecting = selecting
    selecting.catch(() => {
      if (this.#selecting === selecting) this.#selecting = undefined
    })
    return selecting
  }

  async #firstUsable(signal: AbortSignal): Promise<Selection> {
    const skipped: string[] = []
    for (const { name, load } of this.#candidates) {
      const driver = await load()
      const reason = await driver.unusableReason(signal)
      if (signal.aborted) throw new AppError('aborted', 'The action was aborted')
      if (reason === undefined) {
        if (skipped.length > 0) this.#log.warn('browser backend replaced', { backend: name, skipped })
        return { name, driver, skipped }
      }
      skipped.push(`${name} cannot be used: ${reason}`)
      await driver.close()
    }
    throw new AppError('unavailable', `No browser can be used on this machine: ${skipped.join('; ')}`)
  }
}

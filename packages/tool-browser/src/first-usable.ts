/** The first of several drivers that can work on this machine, chosen with the first action. */

import { untilAborted } from '@sluice/kit'
import { AppError, errorText, type Finding, type Logger, type ToolContext } from '@sluice/sdk'
import type { Action } from './actions.ts'
import type { Driver, OptionalDriver } from './backend.ts'

export interface Candidate {
  /** The value of `[browser] backend`. */
  readonly name: string
  load(): Promise<OptionalDriver>
}

const FIX = 'install what one of them lacks; native needs no program but Chromium'

interface Chosen {
  readonly name: string
  readonly driver: Driver
  /** Why those before it are passed over. */
  readonly passedOver: readonly string[]
}

export class FirstUsable implements Driver {
  readonly #candidates: readonly Candidate[]
  readonly #log: Logger
  readonly #closing = new AbortController()
  #choosing: Promise<Chosen> | undefined

  constructor(candidates: readonly Candidate[], log: Logger) {
    this.#candidates = candidates
    this.#log = log
  }

  async run(action: Action, call: ToolContext): Promise<string> {
    const { driver } = await untilAborted(this.#choose(), call.signal, 'the action was aborted')
    return driver.run(action, call)
  }

  async check(signal: AbortSignal): Promise<readonly Finding[]> {
    const chosen = await untilAborted(this.#choose(), signal, 'the check was aborted').catch(errorText)
    if (typeof chosen === 'string') return [{ status: 'fail', detail: chosen, fix: FIX }]
    const { name, driver, passedOver } = chosen
    const notes = passedOver.map((why): Finding => ({ status: 'warn', detail: `${why}; ${name} is used instead`, fix: fixFor(name) }))
    return [...notes, ...(await driver.check(signal))]
  }

  async close(): Promise<void> {
    this.#closing.abort()
    const chosen = await this.#choosing?.catch(() => undefined)
    this.#choosing = undefined
    await chosen?.driver.close()
  }

  /** Where none can be used it is looked for again at the next action: something may have been installed. */
  #choose(): Promise<Chosen> {
    if (this.#choosing) return this.#choosing
    const choosing = this.#firstUsable(this.#closing.signal)
    this.#choosing = choosing
    choosing.catch(() => {
      if (this.#choosing === choosing) this.#choosing = undefined
    })
    return choosing
  }

  async #firstUsable(signal: AbortSignal): Promise<Chosen> {
    const passedOver: string[] = []
    for (const { name, load } of this.#candidates) {
      const driver = await load()
      const why = await driver.unusable(signal)
      if (signal.aborted) throw new AppError('aborted', 'the action was aborted')
      if (why === undefined) {
        if (passedOver.length > 0) this.#log.warn('another browser backend is used', { backend: name, because: passedOver })
        return { name, driver, passedOver }
      }
      passedOver.push(`${name} cannot be used: ${why}`)
      await driver.close()
    }
    throw new AppError('unavailable', `there is no browser here: ${passedOver.join('; ')}`)
  }
}

const fixFor = (name: string): string => `set backend = "${name}" under [browser] to say so, or mend what stands here`

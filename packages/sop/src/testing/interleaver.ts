/**
 * Asynchronous calls that proceed in a chosen order. Each call waits twice, before it acts and before its caller gets the result,
 * so that a crash can happen before, between and after.
 */
import { AppError } from '@sluice/sdk'

export interface Hop {
  readonly label: string
  /** The duration of a sleep in milliseconds; null for a call. */
  readonly ms: number | null
  /** Whether the call may fail instead. */
  readonly mayFail: boolean
  go(): void
  fail(): void
}

export class Interleaver {
  readonly #hops: Hop[] = []
  readonly #isDead = { value: false }

  get waiting(): readonly Hop[] {
    return this.#hops
  }

  /** Blocks all present and future calls for ever. */
  kill(): void {
    this.#isDead.value = true
    this.#hops.length = 0
  }

  hop(label: string, { ms = null, mayFail = false }: Partial<Pick<Hop, 'ms' | 'mayFail'>> = {}): Promise<void> {
    if (this.#isDead.value) return new Promise(() => undefined)
    return new Promise((resolve, reject) => {
      const remove = () => this.#hops.splice(this.#hops.indexOf(hop), 1)
      const hop: Hop = {
        label,
        ms,
        mayFail,
        go: () => {
          remove()
          resolve()
        },
        fail: () => {
          remove()
          reject(new AppError('unavailable', `${label} failed`))
        },
      }
      this.#hops.push(hop)
    })
  }

  /** Returns the port with its asynchronous methods interleaved. With `isShaky` they may fail, before or after they have acted. */
  through<Port extends object>(name: string, port: Port, { isShaky = false, except = [] as readonly (keyof Port)[] } = {}): Port {
    const members = {} as Port
    for (const key of keysOf(port)) {
      const method = port[key]
      if (typeof method !== 'function') continue
      const label = `${name}.${String(key)}`
      const direct = (...args: unknown[]) => Reflect.apply(method, port, args)
      const hopping = async (...args: unknown[]) => {
        await this.hop(label, { mayFail: isShaky })
        const answer: unknown = await direct(...args)
        await this.hop(`${label} answers`, { mayFail: isShaky })
        return answer
      }
      members[key] = (except.includes(key) ? direct : hopping) as Port[typeof key]
    }
    return members
  }
}

/** Returns the method names of a plain object or of an instance of a class. */
function keysOf<Port extends object>(port: Port): (keyof Port)[] {
  const inherited = Object.getOwnPropertyNames(Object.getPrototypeOf(port)).filter((key) => !(key in Object.prototype))
  return [...new Set([...Object.keys(port), ...inherited])].filter(
    (key) => !Object.getOwnPropertyDescriptor(Object.getPrototypeOf(port), key)?.get,
  ) as (keyof Port)[]
}

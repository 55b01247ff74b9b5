/** The buttons of the messages of the bot. They are shown as reactions, and a person presses one by reacting alike. */
import { members, parsedOrUndefined, text } from '@sluice/kit/foreign-json'
import { type Button, sha256Hex } from '@sluice/sdk'
import type { Vault } from './vault.ts'

const PRESSES = 'press/'
const MESSAGES_MAX = 500
const SIGNS = { good: '✅', bad: '❌' } as const

/** The buttons of one message: their values by the keys of the reactions, and the events of the bot's own reactions. */
interface Shown {
  readonly message: string
  readonly values: Readonly<Record<string, string>>
  readonly reactions: readonly string[]
}

export const reactionKey = ({ label, tone }: Button): string => `${SIGNS[tone]} ${label}`

export class Presses {
  readonly #vault: Vault
  /** By message, the oldest first. */
  readonly #shown: Map<string, Shown>

  private constructor(vault: Vault, shown: Map<string, Shown>) {
    this.#vault = vault
    this.#shown = shown
  }

  static async load(vault: Vault): Promise<Presses> {
    const records = await vault.read(PRESSES)
    const shown = [...records.values()].map((value) => parsedOrUndefined(value) as Shown)
    return new Presses(vault, new Map(shown.filter((one) => text(members(one).message) !== '').map((one) => [one.message, one])))
  }

  get size(): number {
    return this.#shown.size
  }

  valueOf(message: string, key: string): string | undefined {
    const values = this.#shown.get(message)?.values ?? {}
    // Some clients add or remove the variation selector of an emoji.
    const plain = (text: string): string => text.replaceAll('\ufe0f', '').trim()
    const found = Object.keys(values).find((known) => plain(known) === plain(key))
    return found === undefined ? undefined : values[found]
  }

  reactionsTo(message: string): readonly string[] {
    return this.#shown.get(message)?.reactions ?? []
  }

  show(message: string, buttons: readonly Button[], reactions: readonly string[]): void {
    const shown = { message, values: Object.fromEntries(buttons.map((button) => [reactionKey(button), button.value])), reactions }
    this.#shown.set(message, shown)
    this.#vault.put(nameOf(message), shown)
    const [oldest] = this.#shown.keys()
    if (oldest !== undefined && this.#shown.size > MESSAGES_MAX) this.remove(oldest)
  }

  remove(message: string): void {
    if (this.#shown.delete(message)) this.#vault.set(nameOf(message), undefined)
  }
}

const nameOf = (message: string): string => `${PRESSES}${sha256Hex(message).slice(0, 32)}`

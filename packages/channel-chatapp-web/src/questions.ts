/** Remembers the buttons of the last questions, which people press by a reaction: messages of this platform have no buttons. */
import { BoundedMap } from '@sluice/kit'
import { list, members, text } from '@sluice/kit/foreign-json'
import type { Button, KeyValue } from '@sluice/sdk'

export const QUESTIONS_MAX = 200

const GOOD: ReadonlySet<string> = new Set(['👍', '✅', '👌', '✔'])
const BAD: ReadonlySet<string> = new Set(['👎', '❌', '✖'])

/** A reaction without the colour of a skin and without the mark of a coloured emoji. */
const plain = (emoji: string): string => emoji.replace(/[\u{1F3FB}-\u{1F3FF}\uFE0F]/gu, '')

export class Questions {
  readonly #keyValue: KeyValue
  readonly #key: string
  readonly #buttons = new BoundedMap<string, readonly Pick<Button, 'value' | 'tone'>[]>(QUESTIONS_MAX)

  constructor(keyValue: KeyValue, prefix: string) {
    this.#keyValue = keyValue
    this.#key = `questions/${prefix}`
  }

  async load(): Promise<void> {
    for (const entry of list(await this.#keyValue.get(this.#key))) {
      const [message, buttons] = list(entry)
      const read = list(buttons).map(members)
      this.#buttons.set(
        text(message),
        read.map(({ value, tone }) => ({ value: text(value), tone: tone === 'bad' ? 'bad' : 'good' })),
      )
    }
  }

  async ask(message: string, buttons: readonly Button[]): Promise<void> {
    this.#buttons.set(
      message,
      buttons.map(({ value, tone }) => ({ value, tone })),
    )
    await this.#store()
  }

  async close(message: string): Promise<void> {
    if (this.#buttons.delete(message)) await this.#store()
  }

  /** Returns the value of the first button with the meaning of the reaction. */
  pressed(message: string, emoji: string): string | undefined {
    const tone = GOOD.has(plain(emoji)) ? 'good' : BAD.has(plain(emoji)) ? 'bad' : undefined
    return tone && this.#buttons.get(message)?.find((button) => button.tone === tone)?.value
  }

  #store(): Promise<void> {
    return this.#keyValue.set(
      this.#key,
      [...this.#buttons.entries()].map(([message, buttons]) => [message, buttons.map(({ value, tone }) => ({ value, tone }))]),
    )
  }
}

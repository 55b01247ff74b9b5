/** Rules for the kinds of messages: every kind arrives, and the words of other people are kept apart from the sender's. */
import { AppError, type Inbound, QUOTED_CHARS_MAX, THING_KINDS, thingLine, wordsOf } from '@sluice/sdk'
import { expect } from 'vitest'
import type { ArrivalSubject } from '../channel-subject.ts'
import type { Rules } from '../rules.ts'
import { expectAddressed } from './addressed.ts'
import type { Bench } from './bench.ts'
import { damaged } from './damaged.ts'

export function arrivalRules({ channel }: Pick<Bench, 'channel'>, { parse, recorded, never = {}, menu }: ArrivalSubject): Rules {
  const all = async (): Promise<readonly { readonly what: string; readonly message: Inbound }[]> => {
    const found = []
    for (const { what, payload } of recorded) for (const message of await parse(payload)) found.push({ what, message })
    return found
  }
  const having = async (member: keyof NonNullable<ArrivalSubject['never']>) => {
    const messages = (await all()).filter(({ message }) => message[member] !== undefined)
    const reason = never[member]
    if (reason === undefined) expect(messages.length, `a recorded payload with ${member}`).toBeGreaterThan(0)
    else expect([messages, reason === '']).toEqual([[], false])
    return messages
  }
  return {
    'everything a person can send arrives as one message with words or files': async () => {
      for (const { what, source, payload, expect: members } of recorded) {
        const messages = await parse(payload)
        expect(messages, what).toMatchObject([members])
        const [{ attachments = [], forwarded, ...message }] = messages as [Inbound]
        const words = wordsOf({ ...message, forwarded })
        expect(words !== '' || attachments.length > 0 || message.changes?.what === 'deleted', `${what} has words or files`).toBe(true)
        expect(source, `source of ${what}`).toMatch(/\S/)
      }
    },

    'quoted: words of at most 1,000 characters, apart from the text, and marked if they are of the bot or the sender': async () => {
      for (const { what, message } of await having('quoted')) {
        const { quoted, text } = message
        expect(quoted?.text.length, what).toBeLessThanOrEqual(QUOTED_CHARS_MAX)
        if (quoted?.text) expect(text, what).not.toContain(quoted.text)
        if (quoted?.id !== undefined && message.inReplyTo !== undefined) expect(quoted.id, what).toBe(message.inReplyTo)
        if (quoted?.author?.id === message.sender) expect(quoted?.by, what).toBe('sender')
      }
    },

    'forwarded: words and files that are not among those of the sender': async () => {
      for (const { what, message } of await having('forwarded')) {
        if (message.forwarded?.text) expect(message.text, what).not.toContain(message.forwarded.text)
        for (const file of message.forwarded?.attachments ?? []) expect(message.attachments ?? [], what).not.toContainEqual(file)
      }
    },

    'things: one readable line each': async () => {
      for (const { what, message } of await having('things')) {
        for (const one of message.things ?? []) {
          expect(THING_KINDS, what).toContain(one.kind)
          expect(thingLine(one), what).toMatch(/^\[[^\n[\]]+\]$/)
        }
      }
    },

    'addressed: every message says how': async () => {
      for (const { what, message } of await all()) expectAddressed(message, what)
    },

    'a command from the menu is addressed as `direct` in a direct chat, and as `command` in a room': async () => {
      if (channel().offerCommands) expect(menu, 'payloads of a command from the menu').toBeDefined()
      if (!menu) return
      expect(await parse(menu.direct)).toMatchObject([{ text: expect.stringMatching(/^\/[a-z]/), addressed: 'direct' }])
      expect(await parse(menu.room)).toMatchObject([{ text: expect.stringMatching(/^\/[a-z]/), addressed: 'command' }])
    },

    'no damaged member of a recorded payload makes the channel throw': async () => {
      for (const { payload, what } of recorded) {
        for (const json of damaged(JSON.stringify(payload))) {
          try {
            for (const { text, id, sender, to } of await parse(JSON.parse(json)))
              for (const part of [text, id, sender, to.to]) expect(typeof part, what).toBe('string')
          } catch (error) {
            if (!(error instanceof AppError) || error.code !== 'invalid_request') throw new Error(`${what}: ${json}`, { cause: error })
          }
        }
      }
    },
  }
}

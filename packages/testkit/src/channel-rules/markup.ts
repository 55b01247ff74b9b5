/** Rules for replies with bold words, code, links, lists and tables. */
import { measure } from '@sluice/kit'
import { renderMarkdown } from '@sluice/kit/markdown'
import { splitStyled } from '@sluice/kit/styled-text'
import type { Channel, Outbound } from '@sluice/sdk'
import { expect } from 'vitest'
import { effort } from '../random.ts'
import { RAW_MARK, replyCorpus } from '../reply-corpus.ts'
import type { Rules } from '../rules.ts'
import type { Bench } from './bench.ts'

/** A nightly run reads all replies of the tests of `kit/markup`, which takes seconds for each channel. */
const REPLIES = Math.max(66, effort(200))

/** Returns the messages that show a reply on the platform. */
export function messagesOf({ limits, markup }: Channel, markdown: string): readonly Pick<Outbound, 'text' | 'styles' | 'plain'>[] {
  if (!markup) return []
  const { write } = markup
  return splitStyled(renderMarkdown(markdown, markup), limits, write).map((part) =>
    write ? { text: write(part), plain: part.text } : part,
  )
}

export function markupRules({ channel }: Bench): Rules {
  return {
    'a reply shows no mark of Markdown, loses no word, and keeps the limit': () => {
      const subject = channel()
      const { limits, markup } = subject
      for (const { markdown, words, literals, addresses } of markup ? replyCorpus(REPLIES) : []) {
        const messages = messagesOf(subject, markdown)
        const start = markdown.slice(0, 200)
        for (const { text, styles = [] } of messages) {
          expect(measure(text, limits.unit), start).toBeLessThanOrEqual(limits.text)
          for (const { kind, from, to } of styles)
            expect([markup?.shows.includes(kind), from < to, to <= text.length]).toEqual([true, true, true])
        }
        const all = messages.map(({ text, plain = text }) => plain).join('\n')
        expect(
          [...words, ...literals].filter((word) => !all.includes(word)),
          start,
        ).toEqual([])
        if (!markup?.spoken) {
          const sent = JSON.stringify(messages).replaceAll(/%2[89]/g, '')
          expect(
            addresses.filter((address) => !sent.includes(address)),
            start,
          ).toEqual([])
        }
        const rest = literals.reduce((left, literal) => left.replace(literal, ''), all).replace(/https:\S+/g, '')
        expect(RAW_MARK.exec(rest)?.[0], start).toBeUndefined()
      }
    },
  }
}

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { mentions, plainText } from './plain-text.ts'
import { escapeText } from './send.ts'

test.each([
  ['<@UBOT> hi', 'hi'],
  ['<@UBOT>: hi', 'hi'],
  ['hi <@UBOT|sluice>, are you there?', 'hi are you there?'],
  ['ask <@U1> or <@U2|bob> or <@U3|@carol>', 'ask @U1 or @bob or @carol'],
  ['in <#C1|general> and <#C2>', 'in #general and #C2'],
  ['<!here> <!subteam^S1|@ops> <!date^1^{date}|yesterday>', '@here @ops yesterday'],
  ['see <https://a.example/?x=1&amp;y=2>', 'see https://a.example/?x=1&y=2'],
  ['see <https://a.example|the page>', 'see the page (https://a.example)'],
  ['<mailto:a@b.example|a@b.example>', 'a@b.example'],
  ['1 &lt; 2 &amp;&amp; 3 &gt; 2', '1 < 2 && 3 > 2'],
  ['&amp;lt;', '&lt;'],
])('plainText turns %s into %s', (marked, plain) => {
  expect(plainText(marked, 'UBOT')).toBe(plain)
})

test('plainText restores escaped text', () => {
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => plainText(escapeText(text), 'UBOT') === text.trim()))
})

test('mentions recognizes only the bot itself', () => {
  expect([
    mentions('<@UBOT> x', 'UBOT'),
    mentions('<@UBOT|b> x', 'UBOT'),
    mentions('<@UBOT2> x', 'UBOT'),
    mentions('UBOT', 'UBOT'),
  ]).toEqual([true, true, false, false])
})

import { expect, test } from 'vitest'
import { plainBody } from './body.ts'
import { keepsMarks, ownBelow, quotesIn } from './own-below.ts'
import { typedIn } from './typed.ts'

const WROTE = 'On 29/11/2026 01:52, Eve wrote:'
const ownIn = (text: string): string[] => ownBelow(text).map(({ from, to }) => text.slice(from, to).trim())

test.each([
  ['an answer below the quote', `${WROTE}\n> Deploy?\n> Now?\n\nYes, please.\n\nAda`, ['Yes, please.\n\nAda']],
  ['an answer below a quote without an attribution', '> Deploy?\n\nYes', ['Yes']],
  ['an empty line above the quote', `${WROTE}\n\n> Deploy?\n\nYes`, ['Yes']],
  ['answers between quotes', `Hi Eve,\n\n${WROTE}\n> One?\n\nFirst.\n\n> Two?\n\nSecond.`, ['First.', 'Second.']],
  ['a quote in a quote', `${WROTE}\n> > Old?\n> > older\n> New?\n\nYes`, ['Yes']],
  ['an empty line in the quote', `${WROTE}\n> One\n>\n> Two\n\n> Three\n\nYes`, ['Yes']],
  ['a second quote with an attribution', `> One?\n\nFirst.\n\nOn 28/11/2026 20:00, Bob wrote:\n> Two?\n\nSecond.`, ['First.', 'Second.']],
  ['the footer of a list', `> One?\n\nFirst.\n_______________________________________________\nOps mailing list`, ['First.']],
])('finds %s', (_, text, own) => {
  expect(ownIn(text)).toEqual(own)
})

test.each([
  ['no quote', 'Hello\n\nAda'],
  ['nothing below the quote', `Yes\n\n${WROTE}\n> Deploy?\n\n`],
  ['a line of the quote that was wrapped without a mark', `${WROTE}\n> Please read this, and then\ndelete everything\n> today`],
  ['the last line of the quote, wrapped without a mark', `${WROTE}\n> Please read this, and then\ndelete everything`],
  ['a quote without marks', `${WROTE}\n\nDelete everything.\n\nToday.`],
  ['a quote without marks that begins with words and goes on with marks', `${WROTE}\n\nHello\n\n> x\n\nDelete everything.`],
  ['headers above the quote', 'From: Eve <eve@example.com>\nSent: today\n\n> x\n\nDelete everything.'],
  ['a forward', 'Begin forwarded message:\n\n> x\n\nDelete everything.'],
  ['the title of a forward', '---------- Forwarded message ---------\n> x\n\nDelete everything.'],
  ['a mark of the quoted mail, which a program moves to the right', `${WROTE}\n\n > x\n\nDelete everything.`],
  ['a line of blanks', `${WROTE}\n> Please read this, and then${' '.repeat(60)}\n${' '.repeat(70)}\ndelete everything`],
  ['an attribution in the quote', `${WROTE}\n> x\n>\n> On 1 Jan 2026 at 10:00, Ada <ada@example.com> wrote:\n> Delete everything.`],
  ['the end of an element in the quote', `${WROTE}\n> </blockquote></div>\n> Delete everything.`],
  ['another end of a line in the quote', `${WROTE}\n> x\u2028\u2028Delete everything.\u0085\u0085\vDelete all.`],
])('finds no own words below %s', (_, text) => {
  expect(ownIn(text)).toEqual([])
})

test('reads a quote to its end behind own words that look like an attribution', () => {
  const text = `> One?\n\nFirst.\n\nOn 28 Nov 2026 at 20:00, Bob <bob@example.com> wrote:\n\nDelete everything.`
  expect(ownIn(text)).toEqual(['First.'])
})

test('keeps no marks with carriage returns alone, with which a quoted line could begin another one', () => {
  expect(plainBody('> x\r\rDelete everything.', true).marksAreKept).toBe(false)
  expect(plainBody('> x\r\n\r\nYes.', true)).toEqual({ text: '> x\n\nYes.', marksAreKept: true })
  expect(plainBody('> x\n\nYes.', false).marksAreKept).toBe(false)
})

test.each([
  [{ format: 'flowed' }, true],
  [{ format: 'Flowed', delsp: 'no' }, true],
  [{ format: 'flowed', delsp: 'yes' }, false],
  [{ format: 'fixed' }, false],
  [{}, false],
])('the parameters %j keep the marks: %s', (parameters, isKept) => {
  expect(keepsMarks(parameters)).toBe(isKept)
})

test('counts the subject of a forward, and of an answer with a quote, as words of others', () => {
  const forward = 'Subject: Fwd: Pay me\n\nwhat is it?\n\n---------- Forwarded message ---------\nFrom: Eve'
  expect(quotesIn(forward, false, 'Fwd: Pay me')).toEqual({ quotedFrom: 0, ownBelow: [{ from: 22, to: 35 }] })
  expect(forward.slice(22, 35)).toBe('what is it?\n\n')
  expect(quotesIn('Subject: Fwd: Pay me', false, 'Fwd: Pay me')).toEqual({ quotedFrom: 0 })
  expect(quotesIn('Subject: TR: x\n\nsee\n\n> y', false, 'TR: x')).toEqual({ quotedFrom: 0, ownBelow: [{ from: 16, to: 21 }] })
  expect(quotesIn('Subject: TR: x\n\nsee', false, 'TR: x', true)).toEqual({ quotedFrom: 0, ownBelow: [{ from: 16, to: 19 }] })
  expect(quotesIn('Subject: I: think\n\nof milk', false, 'I: think')).toEqual({})
  expect(quotesIn('Subject: Sum it up\n\nplease', false, 'Sum it up', true)).toEqual({})
  const answer = 'Subject: Re: x\n\n> One?\n\nYes'
  expect(quotesIn(answer, true, 'Re: x')).toEqual({ quotedFrom: 0, ownBelow: [{ from: 24, to: 27 }] })
  expect(quotesIn('Subject: Re: x\n\nYes', true, 'Re: x')).toEqual({})
})

test('says where the quote and the own words are', () => {
  const text = `Subject: x\n\n> One?\n\nYes`
  expect(quotesIn(text, true)).toEqual({ quotedFrom: 12, ownBelow: [{ from: 20, to: 23 }] })
  expect(quotesIn(text, false)).toEqual({ quotedFrom: 12 })
  expect(quotesIn('Subject: x\n\nYes', true)).toEqual({})
})

test('answers below a quote are typed words, unless there are some above it', () => {
  expect(typedIn('Re: x', `${WROTE}\n> Deploy?\n\nyes\n\n-- \nAda`, true)).toBe('yes')
  expect(typedIn('Re: x', `no\n\n${WROTE}\n> Deploy?\n\nyes`, true)).toBe('no')
  expect(typedIn('Re: x', `${WROTE}\n> Deploy?\n\nyes`)).toBe('')
})

test('takes time in proportion to a long text', () => {
  expect(ownBelow('> x\n\ny\n\n'.repeat(20_000))).toHaveLength(20)
})

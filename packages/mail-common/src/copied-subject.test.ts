import { expect, test } from 'vitest'
import { isCopiedSubject, isForwardSubject } from './copied-subject.ts'

test.each(['Re: x', 'AW: x', 'Antw: x', 'SV: x', 'RES: x', 'R: x', 'Odp: x', 'Re[2]: x', '回复：x', 'RE : x'])(
  'takes %j for the subject of an answer',
  (subject) => {
    expect([isCopiedSubject(subject), isForwardSubject(subject)]).toEqual([true, false])
  },
)

test.each(['Fwd: x', 'FW: x', 'WG: x', 'TR : x', 'RV: x', 'ENC: x', 'I: x', '转发：x', ' Fwd: Re: x'])(
  'takes %j for that of a forward',
  (subject) => {
    expect([isCopiedSubject(subject), isForwardSubject(subject)]).toEqual([true, true])
  },
)

test.each(['Report', 'Tram: late', 'Retro: notes', 'x Re: y', ''])('takes %j for the words of the sender', (subject) => {
  expect(isCopiedSubject(subject)).toBe(false)
})

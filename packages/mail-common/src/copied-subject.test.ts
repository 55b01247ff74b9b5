import { expect, test } from 'vitest'
import { isCopiedSubject, isForwardSubject } from './copied-subject.ts'

const readings = (subject: string) => [isCopiedSubject(subject, false), isCopiedSubject(subject, true), isForwardSubject(subject)]

test.each([
  'Re: x',
  'AW: x',
  'Antw: x',
  'SV: x',
  'Odp: x',
  'YNT: x',
  'ΣΧΕΤ: x',
  'תגובה: x',
  'Re[2]: x',
  '回复：x',
  'RE : x',
  '[EXTERNAL] Re: [ops] x',
])('takes %j for the subject of an answer', (subject) => {
  expect(readings(subject)).toEqual([true, true, false])
})

test.each([
  'Fwd: x',
  'FW: x',
  'Doorst: x',
  'Továbbítás: x',
  'ΠΡΘ: x',
  'הועבר: x',
  '转发：x',
  ' Fwd: Re: x',
  '[EXTERNAL] Fwd: x',
  '[ops] [EXT] FW: x',
  'Re: Fwd: x',
  'I: Fwd: x',
])('takes %j for that of a forward', (subject) => {
  expect(readings(subject)).toEqual([true, true, true])
})

test.each([
  'I: x',
  'TR : x',
  'VS: x',
  'FS: x',
  'WG: x',
  'RV: x',
  'ENC: x',
  'PD: x',
  'İLT: x',
  'R: x',
  'RES: x',
  'Vá: x',
  '[EXTERNAL] I: x',
  'R: I: x',
])('takes %j for that of an answer or a forward only in a mail with words of others', (subject) => {
  expect(readings(subject)).toEqual([false, true, false])
})

test.each(['Report', 'Tram: late', 'Retro: notes', 'x Re: y', '[ops] x', '[Re: x] y', '[a] '.repeat(9), ''])(
  'takes %j for the words of the sender',
  (subject) => {
    expect(readings(subject)).toEqual([false, false, false])
  },
)

import * as v from 'valibot'
import { expect, test } from 'vitest'
import { headerSecret, operatorCommand } from '../index.ts'

test.each(['xoxb-1-2_3.4', 'Basic dXNlcg==', ' token \n'])('accepts the header token %j', (token) => {
  expect(v.parse(headerSecret(), token).reveal()).toBe(token)
})

test.each(['to\nken', 'tok\u2014en', 'to\u0000ken', 'tök\u0080en', '\u201Ctoken\u201D'])('refuses the header token %j', (token) => {
  const { success, issues } = v.safeParse(headerSecret(), token)
  expect([success, issues?.[0]?.message]).toEqual([
    false,
    'must contain printable ASCII characters only, because it is sent in an HTTP header',
  ])
})

test('a command of the operator needs a program and each placeholder', () => {
  const schema = operatorCommand({ '{text}': 'the text', '{file}': 'the file to write' })
  const accepts = (command: unknown) => v.safeParse(schema, command).success
  expect(
    [
      ['flite', '{text}', '-o={file}'],
      ['/usr/bin/flite', '{text}', '{file}'],
    ].map(accepts),
  ).toEqual([true, true])
  const wrong = [
    'flite {text} {file}',
    [],
    ['', '{text}', '{file}'],
    ['./flite', '{text}', '{file}'],
    ['flite', '{text}'],
    ['{text}', '{file}'],
  ]
  expect(wrong.filter(accepts)).toEqual([])
  expect(v.safeParse(schema, ['flite', '{text}']).issues?.[0]?.message).toBe(
    'The arguments must contain {text}, the text, and {file}, the file to write',
  )
})

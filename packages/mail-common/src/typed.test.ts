import { expect, test } from 'vitest'
import { typedIn } from './typed.ts'

test.each([
  ['/stop\n', '/stop'],
  ['yes\n\nOn Tue, 3 Jun 2025 at 10:00, Eve <eve@example.com> wrote:\n> Deploy?', 'yes'],
  ['/status\n\n-- \nAda Lovelace\n+44 20 7946 0000', '/status'],
  ['/help\n--\nAda', '/help'],
  ['ok\n\nSent from my phone', 'ok'],
  ['yes\n\nSent from my iPhone', 'yes'],
  ['> quoted', 'Deploy 1.2'],
  ['', 'Deploy 1.2'],
  ['a -- b', 'a -- b'],
])('finds what was typed in %j', (body, typed) => {
  expect(typedIn('Re: AW: Deploy 1.2', body)).toBe(typed)
})

test('cuts a long text, so that it is no command and needs little room', () => {
  expect(typedIn('', `yes ${'x'.repeat(100_000)}`)).toHaveLength(5000)
})

import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { expect, test } from 'vitest'

const sluice = sluiceWith([])

test('a former name of a command works and warns on standard error', async () => {
  const [former, present] = [await sluice('completions', 'bash'), await sluice('completion', 'bash')]
  expect(former).toMatchObject({ code: 0, out: present.out })
  expect(former.err).toContain("'sluice completions' is called 'sluice completion' since 0.2.0.")
  expect(present.err).toBe('')
})

test('a former name has the help of the present one', async () => {
  expect((await sluice('completions', '--help')).out).toContain('<shell>')
})

import { expect, test } from 'vitest'
import { createIngressBudget } from './ingress-budget.ts'

test('what has arrived is bounded over all bodies, and given back with each', () => {
  const budget = createIngressBudget(100)
  const [one, two] = [budget.open(), budget.open()]
  one.take(60)
  two.take(30)
  expect(() => two.take(11)).toThrow(expect.objectContaining({ code: 'unavailable', retryAfterSecs: 5 }))
  one.release()
  one.release()
  two.take(70)
  expect(() => budget.open().take(1)).toThrow()
  two.release()
  budget.open().take(100)
})

test('a body that is announced and does not come takes nothing', () => {
  const budget = createIngressBudget(100)
  for (let body = 0; body < 1000; body++) budget.open()
  budget.open().take(100)
})

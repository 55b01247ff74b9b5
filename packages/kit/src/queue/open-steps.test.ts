import { expect, test } from 'vitest'
import { OpenSteps } from './open-steps.ts'

test('names the steps that have not ended, whatever their end is', async () => {
  const steps = new OpenSteps()
  const [first, second] = [Promise.withResolvers<number>(), Promise.withResolvers<number>()]
  const ends = [steps.during('first', first.promise), steps.during('second', second.promise)] as const
  expect(steps.names).toEqual(['first', 'second'])
  first.reject(new Error('failed'))
  await expect(ends[0]).rejects.toThrow('failed')
  expect(steps.names).toEqual(['second'])
  second.resolve(1)
  expect(await ends[1]).toBe(1)
  expect(steps.names).toEqual([])
})

import fc from 'fast-check'
import { expect, test } from 'vitest'
import { InstantQueue } from './instant-queue.ts'

test('InstantQueue returns every value once, in order', () => {
  const moves = fc.array(fc.oneof(fc.record({ push: fc.nat(50) }), fc.record({ until: fc.nat(50) })))
  fc.assert(
    fc.property(moves, (steps) => {
      const queue = new InstantQueue<number>()
      let model: number[] = []
      for (const step of steps) {
        if ('push' in step) {
          queue.push(step.push, step.push)
          model.push(step.push)
        } else {
          expect(queue.takeUntil(step.until)).toEqual(model.filter((at) => at <= step.until).sort((a, b) => a - b))
          model = model.filter((at) => at > step.until)
        }
        expect(queue.firstMs).toBe(Math.min(...model))
        expect(queue.values().sort((a, b) => a - b)).toEqual(model.toSorted((a, b) => a - b))
      }
    }),
  )
})

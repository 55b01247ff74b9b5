/** The property that holds over all interleavings: whatever happens to procedures in whatever order, the audit rules hold. */
import fc from 'fast-check'
import { type Tally, World } from './world.ts'

const CHOICE_MAX = 2 ** 24
const MOVES_MAX = 240

export const interleavings = (tally?: Tally) =>
  fc.asyncProperty(fc.array(fc.nat(CHOICE_MAX), { minLength: 10, maxLength: MOVES_MAX, size: 'max' }), async (choices) => {
    const world = new World(tally)
    for (const choice of choices) await world.choose(choice)
    const problems = await world.conclude()
    if (problems.length > 0) throw new Error(problems.join('\n'))
  })

/** The property that the audit rules hold over all interleavings of events, decisions, failures and crashes. */
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

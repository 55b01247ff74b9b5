/** The script of the model for one step: it calls the step's tool once, may report the result, and ends. It repeats no call. */

import type { Random } from '@sluice/testkit/random'
import type { Asked, ModelAnswer } from '../model.ts'
import { NOT_RUN } from '../world.ts'
import { lineCommand, stepsOf } from './procedures.ts'

const STEP = /You carry out step (?<step>\d+) of \d+ of the procedure "(?<sop>\w+)" \(run (?<run>[^)\s]+)\)/
const MARK = /"mark":"(?<mark>[^"]+)"/
const REPORTED_SHARE = 0.5

export function scriptedStep({ text, results }: Asked, random: Random, effectsUrl: string): ModelAnswer {
  const { step = '', sop = '', run = '' } = STEP.exec(text)?.groups ?? {}
  const mark = MARK.exec(text)?.groups?.mark
  // A reply that comes too late for its approval is a message to the agent.
  if (run === '' || mark === undefined) return { text: 'What?' }
  const [first] = results
  const number = Number(step)
  if (first === undefined) {
    return stepsOf(sop)[number - 1] === 'command'
      ? { tool: 'shell', input: { command: lineCommand(sop, number, mark) } }
      : { tool: 'http_request', input: { url: `${effectsUrl}/${sop}/${step}`, method: 'POST', body: mark } }
  }
  if (results.length > 1) return { text: `Step ${step} is over.` }
  if (first.includes(NOT_RUN)) return report(run, 'failed')
  return random.chance(REPORTED_SHARE) ? report(run, 'completed') : { text: `Step ${step} is done.` }
}

const report = (run: string, status: 'completed' | 'failed'): ModelAnswer => ({
  tool: 'sop_advance',
  input: { run_id: run, status, output: `it is ${status}` },
})

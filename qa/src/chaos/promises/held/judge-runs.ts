/** Judges runs that waited for others or for a person: each accepted event has one run, whose steps took effect once, in their order. Pure. */
import { SOP_ENDED } from '@sluice/sdk'
import { countsOf } from '../../history.ts'
import { markOf, type SopsView } from '../../sops/history.ts'
import { reportDisorder, Tally } from '../tally.ts'
import type { HeldRecord } from './held-record.ts'

export function judgeRuns({ events, effects, sends }: HeldRecord, { runs, audit, approvals, outbox }: SopsView): readonly Tally[] {
  const tally = new Tally('runs held back')
  const done = countsOf(effects)
  const byMark = Map.groupBy(runs, markOf)
  for (const [mark, path] of events) {
    const [run, another] = byMark.get(mark) ?? []
    tally.accept()
    if (!run) tally.report('lost', `${mark} was accepted at ${path} and has no run`)
    else if (!SOP_ENDED.includes(run.status)) tally.report('unfinished', `the run of ${mark} is ${run.status}`)
    if (another) tally.report('doubled', `${mark} has ${byMark.get(mark)?.length} runs`)
    const completed = run?.results.filter(({ status }) => status === 'completed').map(({ step }) => step) ?? []
    for (const step of completed)
      if (!isQuestion(path, step) && !done.has(`${path.slice(1)}/${step} ${mark}`))
        tally.report('lost', `step ${step} of ${mark} is completed and had no effect`)
  }
  for (const [name, times] of done) if (times > 1) tally.report('doubled', `${name} had its effect ${times} times`)
  for (const records of Map.groupBy(audit, ({ sop }) => sop).values()) {
    const waited = records.filter(({ kind }) => kind === 'run_waiting').map(({ run }) => run ?? '')
    const place = new Map(waited.map((run, at) => [run, at]))
    const begun = records.filter(({ kind }) => kind === 'run_started').map(({ run }) => run ?? '')
    reportDisorder(tally, begun, (run) => place.get(run))
  }

  const asked = new Tally('questions to people')
  for (const { runId: run, stepId: step, prompts } of approvals) {
    asked.accept()
    const own = outbox.filter(({ number }) => prompts.some((prompt) => prompt.number === number))
    if (own.length > 1) asked.report('toldTwice', `${run} ${step} has ${own.length} prompts`)
    if (own.some(({ state }) => state === 'ambiguous')) asked.beUncertain()
  }
  // A prompt that a kill may have cut is sent again by the next life, and never twice by the same one.
  const prompts = sends.filter(({ body }) => body.includes('Is all well?') || body.includes('-again-'))
  for (const [name, times] of countsOf(prompts.map(({ body, life }) => `life ${life}: ${body}`)))
    if (times > 1) asked.report('toldTwice', `${times} sends of one prompt in ${name.slice(0, 300)}`)
  return [tally, asked]
}

const isQuestion = (path: string, step: number): boolean => path === '/asking' && step === 2

/** Checks that an ended turn never runs again, an interrupted one is resumed once in each life, and no stored tool call is repeated. */
import { type History, PROMPT_PART, reporter, type Violation } from './history.ts'

interface Run {
  /** Why the turn has ended. */
  ended?: string
  /** The life in which the turn began last. */
  begunIn?: number
  /** The last life in which the tool had an effect. */
  effectIn?: number
  /** The last life in which the model got the result of the tool. */
  resultIn?: number
}

export function checkRuns({ seen }: History): Violation[] {
  const { found, report } = reporter()
  const runs = new Map<string, Run>()
  const runOf = (mark: string): Run => {
    const run = runs.get(mark) ?? {}
    runs.set(mark, run)
    return run
  }
  let life = 0

  const asked = (mark: string, afterTool: boolean): void => {
    const run = runOf(mark)
    const reportRequest = (rule: string, when: string) => report(rule, `the model was asked about ${mark} ${when}`)
    if (run.ended) reportRequest('ended', `after ${run.ended}`)
    if (afterTool) {
      if (run.resultIn === life) reportRequest('begun', 'twice in one life after its tool call')
      run.resultIn = life
      return
    }
    if (run.resultIn !== undefined) reportRequest('checkpoint', 'from the beginning, although its tool call was stored')
    if (run.begunIn === life) reportRequest('begun', 'twice in one life')
    run.begunIn = life
  }
  const effect = (mark: string): void => {
    const run = runOf(mark)
    if (run.resultIn !== undefined) report('effect', `the tool of ${mark} had an effect after its result was stored`)
    if (run.effectIn === life) report('effect', `the tool of ${mark} had its effect twice in one life`)
    run.effectIn = life
  }

  for (const event of seen) {
    if (event.type === 'started') life += 1
    else if (event.type === 'asked') asked(event.mark, event.afterTool)
    else if (event.type === 'effect') effect(event.mark)
    else if (event.type === 'sending') {
      for (const { mark, part } of event.parts) if (part !== PROMPT_PART) runOf(mark).ended ??= 'its reply was sent'
    } else if (event.type === 'inspected') for (const mark of event.done) runOf(mark).ended ??= 'its end was stored'
  }
  return found
}

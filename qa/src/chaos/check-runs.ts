/** What has ended never runs again, what was cut begins anew once a life, and a tool call whose result is kept is not repeated. */
import { type History, PROMPT_PART, type Violation } from './history.ts'

interface Run {
  /** Why no more may come of it. */
  over?: string
  /** The life it last began in, the last one its tool had an effect in, the last one the model was told the result in. */
  beganIn?: number
  effectIn?: number
  toldIn?: number
}

export function checkRuns({ seen }: History): Violation[] {
  const found: Violation[] = []
  const runs = new Map<string, Run>()
  const runOf = (mark: string): Run => {
    const run = runs.get(mark) ?? {}
    runs.set(mark, run)
    return run
  }
  let life = 0

  const asked = (mark: string, afterTool: boolean): void => {
    const run = runOf(mark)
    const tell = (rule: string, detail: string) => void found.push({ rule, detail: `the model was asked of ${mark} ${detail}` })
    if (run.over) tell('ended', `after ${run.over}`)
    if (afterTool) {
      if (run.toldIn === life) tell('begun', 'twice in one life after its tool')
      run.toldIn = life
      return
    }
    if (run.toldIn !== undefined) tell('checkpoint', 'from the beginning, after its tool call was kept')
    if (run.beganIn === life) tell('begun', 'twice in one life')
    run.beganIn = life
  }
  const effect = (mark: string): void => {
    const run = runOf(mark)
    const tell = (detail: string) => void found.push({ rule: 'effect', detail: `the tool of ${mark} had an effect ${detail}` })
    if (run.toldIn !== undefined) tell('after its result was kept')
    if (run.effectIn === life) tell('twice in one life')
    run.effectIn = life
  }

  for (const event of seen) {
    if (event.type === 'started') life += 1
    else if (event.type === 'asked') asked(event.mark, event.afterTool)
    else if (event.type === 'effect') effect(event.mark)
    else if (event.type === 'sending') {
      for (const { mark, part } of event.parts) if (part !== PROMPT_PART) runOf(mark).over ??= 'its reply was on its way'
    } else if (event.type === 'inspected') for (const mark of event.done) runOf(mark).over ??= 'the store had its end'
  }
  return found
}

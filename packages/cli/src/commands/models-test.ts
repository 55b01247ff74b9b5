/** `sluice models test`: tries what a model can do, in the daemon or, if none runs, in this process. */
import { MODEL_TASKS, MODEL_TESTS, MODEL_TESTS_AND_TASKS, type ModelTestName } from '@sluice/agent/model-tests'
import type { ModelTestFrame } from '@sluice/http/answers'
import { AppError } from '@sluice/sdk'
import { modelTestFrames } from '../api/model-test-frames.ts'
import { withApi } from '../api/open-api.ts'
import type { CliContext, Style } from '../context.ts'
import { textOption } from '../option-values.ts'

type Result = Extract<ModelTestFrame, { type: 'result' }>

/** Exits with 1 if a test has failed. */
export const run = (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json } = context
      const hasTasks = context.options.tasks === true
      const body = { provider: textOption(context, 'provider'), model: textOption(context, 'model'), tests: chosenTests(context) }
      const signal = context.interrupted()
      const frames: ModelTestFrame[] = []
      for await (const frame of modelTestFrames(api, body, signal)) {
        frames.push(frame)
        if (!json) (hasTasks ? printTasks : printFrame)(context, frame, frames)
      }
      if (json) out.json(modelsOf(frames))
      return frames.some((frame) => frame.type === 'result' && frame.outcome === 'failed') ? 1 : 0
    },
    { features: true },
  )

function chosenTests(context: CliContext): readonly ModelTestName[] {
  const names: readonly ModelTestName[] = context.options.tasks === true ? MODEL_TASKS : MODEL_TESTS
  const wanted = textOption(context, 'only')?.split(',')
  if (!wanted) return names
  return wanted.map((text) => {
    const known = names.find((name) => name === text.trim())
    if (!known) throw new AppError('invalid_request', `--only wants ${names.join(', ')}, separated by commas; got '${text}'`)
    return known
  })
}

/** Groups the frames by model. */
const modelsOf = (frames: readonly ModelTestFrame[]) => ({
  models: frames.flatMap((frame, index) => {
    if (frame.type !== 'started') return []
    const rest = frames.slice(index + 1)
    const end = rest.findIndex(({ type }) => type === 'done')
    const { type: _, ...started } = frame
    const { type: __, ...done } = rest[end] ?? frame
    return { ...started, results: rest.slice(0, end).map(({ type: ___, ...result }) => result), ...done }
  }),
})

const OUTCOMES: Record<Result['outcome'], readonly [Style, string]> = {
  ok: ['green', 'ok'],
  failed: ['red', 'failed'],
  not_supported: ['yellow', 'not supported'],
}
const OUTCOME_CHARS = 13
const TEST_CHARS = Math.max(...MODEL_TESTS_AND_TASKS.map((name) => name.length))

export function printFrame({ out }: Pick<CliContext, 'out'>, frame: ModelTestFrame): void {
  if (frame.type === 'started') out.print(out.style('bold', `${frame.entry}: ${frame.provider}:${frame.model}`))
  else if (frame.type === 'result') {
    const { test, outcome, detail, took_ms } = frame
    const [style, text] = OUTCOMES[outcome]
    const head = `${out.style(style, text.padEnd(OUTCOME_CHARS))}  ${named(test).padEnd(TEST_CHARS)}`
    out.print(`${head}  ${secondsText(took_ms)}  ${usageText(frame)}`)
    out.print(`${' '.repeat(OUTCOME_CHARS + 2)}${detail}`)
  } else if (frame.type === 'done') {
    for (const limit of frame.limits) out.print(`The model ${limit}; requests leave that out from now on.`)
    out.print(`In all: ${usageText(frame)}`)
  }
}

/** Prints the tasks of a model as one table, once all have ended. */
function printTasks(context: CliContext, frame: ModelTestFrame, frames: readonly ModelTestFrame[]): void {
  const { out } = context
  if (frame.type === 'result') {
    out.progress(`${named(frame.test)}: ${OUTCOMES[frame.outcome][1]}`)
    return
  }
  if (frame.type === 'done') {
    out.progress('')
    const results = frames.slice(frames.findLastIndex(({ type }) => type === 'started')).filter((one) => one.type === 'result')
    const cells = results.map((one) => [
      named(one.test),
      OUTCOMES[one.outcome][1],
      secondsText(one.took_ms).trim(),
      usageText(one),
      one.detail,
    ])
    out.table(['task', 'outcome', 'time', 'tokens', 'what the model did'], cells)
    const passed = results.filter(({ outcome }) => outcome === 'ok').length
    out.print(`${passed} of ${results.length} tasks are done as they should be.`)
  }
  printFrame(context, frame)
}

const named = (test: ModelTestName): string => test.replaceAll('_', ' ')

const secondsText = (ms: number): string => `${(ms / 1000).toFixed(1).padStart(5)} s`

/** The cost is left out where the configuration has no price. */
const usageText = ({
  input_tokens,
  output_tokens,
  cost_usd,
}: Omit<Extract<ModelTestFrame, { type: 'done' }>, 'type' | 'turn_id' | 'limits'>) =>
  `${input_tokens} + ${output_tokens} tokens${cost_usd > 0 ? `, ${cost_usd.toFixed(6)} USD` : ''}`

/** `sluice models test`: tries what a model can do, in the daemon or, if none runs, in this process. */
import { MODEL_TESTS, type ModelTestName } from '@sluice/agent/model-tests'
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
      const body = { provider: textOption(context, 'provider'), model: textOption(context, 'model'), tests: chosenTests(context) }
      const signal = context.interrupted()
      const frames: ModelTestFrame[] = []
      for await (const frame of modelTestFrames(api, body, signal)) {
        frames.push(frame)
        if (!json) printFrame(context, frame)
      }
      if (json) out.json(modelsOf(frames))
      return frames.some((frame) => frame.type === 'result' && frame.outcome === 'failed') ? 1 : 0
    },
    { features: true },
  )

function chosenTests(context: CliContext): ModelTestName[] | undefined {
  const wanted = textOption(context, 'only')?.split(',')
  return wanted?.map((text) => {
    const known = MODEL_TESTS.find((name) => name === text.trim())
    if (!known) throw new AppError('invalid_request', `--only wants ${MODEL_TESTS.join(', ')}, separated by commas; got '${text}'`)
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
const TEST_CHARS = Math.max(...MODEL_TESTS.map((name) => name.length))

export function printFrame({ out }: Pick<CliContext, 'out'>, frame: ModelTestFrame): void {
  if (frame.type === 'started') out.print(out.style('bold', `${frame.entry}: ${frame.provider}:${frame.model}`))
  else if (frame.type === 'result') {
    const { test, outcome, detail, took_ms } = frame
    const [style, text] = OUTCOMES[outcome]
    const head = `${out.style(style, text.padEnd(OUTCOME_CHARS))}  ${test.replaceAll('_', ' ').padEnd(TEST_CHARS)}`
    out.print(`${head}  ${secondsText(took_ms)}  ${usageText(frame)}`)
    out.print(`${' '.repeat(OUTCOME_CHARS + 2)}${detail}`)
  } else if (frame.type === 'done') {
    for (const limit of frame.limits) out.print(`The model ${limit}; requests leave that out from now on.`)
    out.print(`In all: ${usageText(frame)}`)
  }
}

const secondsText = (ms: number): string => `${(ms / 1000).toFixed(1).padStart(5)} s`

/** The cost is left out where the configuration has no price. */
const usageText = ({
  input_tokens,
  output_tokens,
  cost_usd,
}: Omit<Extract<ModelTestFrame, { type: 'done' }>, 'type' | 'turn_id' | 'limits'>) =>
  `${input_tokens} + ${output_tokens} tokens${cost_usd > 0 ? `, ${cost_usd.toFixed(6)} USD` : ''}`

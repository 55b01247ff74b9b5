/** The message that asks the agent to carry out a step. Text from outside is framed as data. */
import { frameUntrusted, type SopRun, type SopStep, visibleText } from '@sluice/sdk'

/** The limit for an event's payload and for the result of the previous step. */
const DATA_BYTES_MAX = 16_384

/** The tools that every step's turn has, to see its run and to report. */
export const STEP_TOOLS: readonly string[] = ['sop_status', 'sop_advance']

export function stepPrompt(run: SopRun, step: SopStep): string {
  const { event } = run
  const eventName = `${event.source} ${event.topic}`
  const previous = run.results.at(-1)
  const parts = [
    `You carry out step ${step.number} of ${run.steps.length} of the procedure "${run.sop}" (run ${run.id}).${run.description ? ` ${run.description}` : ''}`,
    startedBy(run),
    ...(event.headers ? [`Headers of that event:\n${framed(`headers of ${eventName}`, JSON.stringify(event.headers))}`] : []),
    ...(event.payload ? [`The payload of that event:\n${framed(eventName, event.payload)}`] : []),
    ...(previous
      ? [
          `The step before (${previous.step}) was ${previous.status}, with this result:\n${framed(`result of step ${previous.step}`, previous.output)}`,
        ]
      : []),
    `## Step ${step.number}: ${step.title}${step.body ? `\n\n${step.body}` : ''}`,
    ...(step.tools && step.tools.length > 0 ? [`Tools for this step: ${step.tools.join(', ')}.`] : []),
    ...(step.output !== null ? [`Its output has to be JSON that fits this JSON Schema: ${JSON.stringify(step.output)}`] : []),
    `Do this step and no other. Then call sop_advance with run_id "${run.id}", status "completed", "failed" or "skipped", and as output what the next step needs to know. Report "completed" only for what you have really done.`,
  ]
  return parts.join('\n\n')
}

const framed = (source: string, data: string): string => frameUntrusted(source, plainText(data, DATA_BYTES_MAX))

/** Returns one line about the event. Its topic may come from the publisher of a message, and its actor from a sender's name. */
export const startedBy = ({ event: { by, source, topic } }: SopRun, starter = by): string =>
  `Started by ${plainLine(starter, 200)}: ${source} ${plainLine(topic, 500)}`

/** Like `plainText`, on one line. */
export const plainLine = (text: string, bytesMax: number): string => plainText(text, bytesMax).replaceAll(/\s+/g, ' ')

/** Removes invisible characters and cuts the rest to `bytesMax` bytes of UTF-8. */
export function plainText(text: string, bytesMax: number): string {
  const bytes = new TextEncoder().encode(visibleText(text))
  if (bytes.length <= bytesMax) return new TextDecoder().decode(bytes)
  const kept = new TextDecoder('utf-8').decode(bytes.subarray(0, bytesMax), { stream: true })
  return `${kept}\n(${bytes.length - bytesMax} more bytes are left out)`
}

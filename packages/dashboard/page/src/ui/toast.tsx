/** Short reports of what a person has just done, which screen readers say too. */
import { signal } from '@preact/signals'
import { Text } from './text.tsx'

interface Report {
  readonly id: number
  readonly tone: 'ok' | 'bad'
  readonly text: string
}

const SHOWN_MS = 6000
const SHOWN_MAX = 4
const reports = signal<readonly Report[]>([])
let count = 0

const remove = (id: number): void => {
  reports.value = reports.value.filter((report) => report.id !== id)
}

export function say(text: string, tone: Report['tone'] = 'ok'): void {
  count += 1
  const id = count
  reports.value = [...reports.value, { id, tone, text }].slice(-SHOWN_MAX)
  // A problem stays until a person has read it.
  if (tone === 'ok') setTimeout(remove, SHOWN_MS, id)
}

/** Does what a person asked for, and says how it ended. Resolves to undefined if it failed. */
export async function attempt<Result>(
  work: () => Promise<Result>,
  done?: string | ((result: Result) => string),
): Promise<Result | undefined> {
  try {
    const result = await work()
    if (done) say(typeof done === 'string' ? done : done(result))
    return result
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), 'bad')
    return undefined
  }
}

export const Toasts = () => (
  <div class="toasts" role="status" aria-live="polite">
    {reports.value.map(({ id, tone, text }) => (
      <div key={id} class={`note ${tone}`}>
        <div class="grow">
          <Text value={text} />
        </div>
        <button type="button" class="small plain" onClick={() => remove(id)}>
          Close
        </button>
      </div>
    ))}
  </div>
)

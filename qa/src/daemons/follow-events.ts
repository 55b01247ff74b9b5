/** Subscribes to the event stream. */

export interface SeenEvent {
  readonly type: string
  readonly [member: string]: unknown
}

export interface Following {
  /** Resolves once the stream is open. */
  readonly open: Promise<void>
  readonly events: readonly SeenEvent[]
  close(): void
}

export function followEvents(url: string): Following {
  const events: SeenEvent[] = []
  const closed = new AbortController()
  const opened = Promise.withResolvers<void>()
  const follow = async (): Promise<void> => {
    const response = await fetch(url, { signal: closed.signal })
    if (!response.ok || !response.body) throw new Error(`The event stream ${url} was refused with status ${response.status}.`)
    opened.resolve()
    let rest = ''
    for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
      const frames = (rest + text).split('\n\n')
      rest = frames.pop() ?? ''
      for (const frame of frames) {
        const data = /^data: (.*)$/m.exec(frame)?.[1]
        if (data !== undefined) events.push(JSON.parse(data) as SeenEvent)
      }
    }
  }
  follow().catch((error: unknown) => opened.reject(error))
  return { open: opened.promise, events, close: () => closed.abort() }
}

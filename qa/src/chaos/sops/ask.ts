/** One request to the daemon as a program makes it; a daemon that dies has not answered. */
const MS_MAX = 10_000

export interface Answered {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export interface AskOptions {
  readonly path: string
  /** Absent: it is a look. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

export async function ask(url: string, { path, body, headers = {}, signal }: AskOptions): Promise<Answered | undefined> {
  try {
    const response = await fetch(url + path, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(MS_MAX)]),
      ...(body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }),
    })
    return { status: response.status, body: (await response.json()) as Answered['body'] }
  } catch {
    return undefined
  }
}

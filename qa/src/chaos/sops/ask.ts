/** Makes one request to the daemon, like a program. Resolves to undefined if the daemon does not answer. */
const MS_MAX = 10_000

export interface Answer {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
}

export interface AskOptions {
  readonly path: string
  /** Absent: a GET request. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
  readonly signal: AbortSignal
}

export async function ask(url: string, { path, body, headers = {}, signal }: AskOptions): Promise<Answer | undefined> {
  try {
    const response = await fetch(url + path, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(MS_MAX)]),
      ...(body && { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }),
    })
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  } catch {
    return undefined
  }
}

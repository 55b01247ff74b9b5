/** Small parts of pages: the head, cards, badges, notes, and what stands where data is missing. */
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { ApiError } from '../data/api.ts'
import { Name, Text } from './text.tsx'

interface PageProps {
  readonly title: string
  readonly about?: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
  /** Fills the window, and scrolls in its parts. */
  readonly whole?: boolean
}

/** A page. Opening it moves the focus to its title, so that screen readers say where one is. */
export function Page({ title, about, actions, children, whole = false }: PageProps) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    document.title = `${title} · Sluice`
  }, [title])
  useEffect(() => {
    if (document.activeElement === document.body || document.activeElement?.closest('.side'))
      heading.current?.focus({ preventScroll: true })
  }, [])
  if (whole)
    return (
      <div class="page whole">
        <h1 class="hidden-text" tabIndex={-1} ref={heading}>
          {title}
        </h1>
        {children}
      </div>
    )
  return (
    <div class="page">
      <div class="head">
        <div class="grow">
          <h1 tabIndex={-1} ref={heading} dir="auto">
            {title}
          </h1>
          {about && <p>{about}</p>}
        </div>
        {actions && <div class="row">{actions}</div>}
      </div>
      {children}
    </div>
  )
}

interface CardProps {
  readonly title: ComponentChildren
  readonly actions?: ComponentChildren
  readonly children: ComponentChildren
  /** Whether the content has a margin; tables have none. */
  readonly padded?: boolean
}

export function Card({ title, actions, children, padded = false }: CardProps) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        {actions && <div class="row">{actions}</div>}
      </header>
      {padded ? <div class="body">{children}</div> : children}
    </section>
  )
}

export type Tone = 'ok' | 'warn' | 'bad' | 'info' | 'quiet'
const TONES: Readonly<Record<Exclude<Tone, 'quiet'>, readonly string[]>> = {
  ok: ['ok', 'done', 'sent', 'completed', 'approved', 'ready', 'live', 'confined', 'verified', 'held'],
  warn: [
    'pending',
    'waiting',
    'waiting_approval',
    'paused_checkpoint',
    'ambiguous',
    'limited',
    'connecting',
    'starting',
    'warn',
    'fallback',
    'unconfined',
    'interrupted',
    'degraded',
    'unknown',
  ],
  bad: ['dead', 'failed', 'down', 'failing', 'fail', 'error', 'refusing', 'rejected', 'broken', 'stopped'],
  info: ['running', 'sending', 'queued', 'started'],
}
const toneOf = (state: string): Tone =>
  (Object.entries(TONES).find(([, states]) => states.includes(state))?.[0] as Tone | undefined) ?? 'quiet'

/** The state of something, with a colour that its word repeats. */
export const Badge = ({ state, tone = toneOf(state) }: { readonly state: string; readonly tone?: Tone }) => (
  <span class={`badge ${tone}`}>
    <Name value={state.replaceAll('_', ' ')} />
  </span>
)

export const Note = ({ tone = 'quiet', children }: { readonly tone?: Tone; readonly children: ComponentChildren }) => (
  <div class={`note ${tone}`} role={tone === 'bad' ? 'alert' : undefined}>
    {children}
  </div>
)

export const Empty = ({ children }: { readonly children: ComponentChildren }) => <p class="empty">{children}</p>

/** A problem in the words of the gateway. */
export function Problem({ error, retry }: { readonly error: unknown; readonly retry?: (() => unknown) | undefined }) {
  const message = error instanceof Error ? error.message : String(error)
  return (
    <div class="note bad" role="alert">
      <Text value={message} />
      {error instanceof ApiError && typeof error.fields.build === 'string' && <code>{error.fields.build}</code>}
      {retry && (
        <button type="button" class="small" onClick={() => void retry()}>
          Try again
        </button>
      )}
    </div>
  )
}

interface LoadedProps<Data> {
  readonly query: { readonly data: Data | undefined; readonly error: unknown; refetch(): unknown }
  readonly children: (data: Data) => ComponentChildren
}

/** Shows the data of a query, or that it loads, or its problem. Data that was shown before stays while a later request fails. */
export function Loaded<Data>({ query: { data, error, refetch }, children }: LoadedProps<Data>) {
  if (data !== undefined) return <>{children(data)}</>
  if (error) return <Problem error={error} retry={refetch} />
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  )
}

export const Facts = ({ rows }: { readonly rows: readonly (readonly [name: string, value: ComponentChildren] | false | undefined)[] }) => (
  <dl class="facts">
    {rows.map(
      (row) =>
        row && (
          <>
            <dt>
              <Name value={row[0]} />
            </dt>
            <dd>{row[1]}</dd>
          </>
        ),
    )}
  </dl>
)

/** The first run: a provider is set up, tested, and gets the first message. */
import { useEffect, useState } from 'preact/hooks'
import { ApiError, answered, api, type Got } from '../data/api.ts'
import type { operations } from '../data/api-types.ts'
import { linesOf } from '../data/json-lines.ts'
import { refresh, useApi } from '../data/queries.ts'
import { go } from '../data/router.ts'
import { Act, Field } from '../ui/controls.tsx'
import { HistoryCard } from '../ui/history-card.tsx'
import { Badge, Card, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { Name, Text } from '../ui/text.tsx'
import { say } from '../ui/toast.tsx'
import { duration, short, usd } from '../ui/values.tsx'
import { type Change, previewOf } from './configuration.tsx'

type Offered = operations['postApiModelsOffered']['responses'][200]['content']['application/json']['models']

type Provider = Got<'/api/models/providers'>['providers'][number]

/** An endpoint whose kind is unknown speaks the API of this one. */
const COMPATIBLE = 'openai'

interface Result {
  readonly type: string
  readonly test?: string
  readonly outcome?: string
  readonly detail?: string
  readonly took_ms?: number
  readonly cost_usd?: number
  readonly message?: string
}

const problemOf = (address: string): string | undefined =>
  address === '' || /^https?:\/\/./.test(address) ? undefined : 'An address begins with http:// or https://'

const TESTS = ['text', 'streaming', 'tool_call'] as const

/** A test that runs: how far it is, for how long, and a way out. A service that never answers takes two minutes. */
function Testing({ done, cancel }: { readonly done: number; readonly cancel: () => void }) {
  const [secs, setSecs] = useState(0)
  useEffect(() => {
    const timer = setInterval(() => setSecs((before) => before + 1), 1000)
    return () => clearInterval(timer)
  }, [])
  return (
    <div class="row spread">
      <span class="row grow">
        <progress aria-label="Tests that have ended" max={TESTS.length} value={done} /> {TESTS[done]?.replaceAll('_', ' ')},{' '}
        {duration(secs * 1000)}
      </span>
      <button type="button" onClick={cancel}>
        Cancel
      </button>
    </div>
  )
}

export function Setup() {
  const config = useApi('/api/config', {})
  const providers = useApi('/api/models/providers', {})
  return (
    <Page title="Set up a provider" about="The model that answers. Its key is stored encrypted, and is never shown again.">
      <Loaded query={config}>
        {({ version, editable }) =>
          editable ? (
            <Loaded query={providers}>{(build) => <Form version={version} providers={build.providers} />}</Loaded>
          ) : (
            <Note>The configuration cannot be changed here.</Note>
          )
        }
      </Loaded>
      <HistoryCard of="provider" />
    </Page>
  )
}

function Form({ version, providers }: { readonly version: string; readonly providers: readonly Provider[] }) {
  const [kind, setKind] = useState<string>(providers[0]?.kind ?? 'custom')
  const [address, setAddress] = useState('')
  const [key, setKey] = useState('')
  const [model, setModel] = useState('')
  const [results, setResults] = useState<readonly Result[]>([])
  const [isTested, setTested] = useState(false)
  const [testing, setTesting] = useState<AbortController | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const [offered, setOffered] = useState<NonNullable<Offered> | undefined>()
  const lacking = results.flatMap(({ test: name, outcome }) => (name === undefined || outcome === 'ok' ? [] : [name.replaceAll('_', ' ')]))
  const isCustom = kind === 'custom'
  const chosen = providers.find((provider) => provider.kind === kind)
  const needsAddress = !chosen?.base_url
  const needsKey = Boolean(chosen?.key_variable)
  const endpoint = {
    kind: isCustom ? COMPATIBLE : kind,
    ...(address !== '' && { base_url: address }),
    ...(key !== '' && { api_key: key }),
    ...(model !== '' && { model }),
  }
  const changed =
    <Value,>(set: (value: Value) => void) =>
    (value: Value) => {
      set(value)
      setTested(false)
      setResults([])
      setOffered(undefined)
    }
  const list = async () => {
    setProblem(undefined)
    try {
      const { models, error } = await answered(api.POST('/api/models/offered', { body: { endpoint: endpoint as never } }))
      if (error !== null) throw new Error(error)
      if (models === null) throw new Error('This endpoint has no list of its models.')
      setOffered(models)
      say(`The endpoint offers ${models.length} models.`)
    } catch (failure) {
      setProblem(failure)
    }
  }
  const test = async () => {
    const running = new AbortController()
    setProblem(undefined)
    setResults([])
    setTesting(running)
    try {
      const { response, error } = await api.POST('/api/models/test', {
        body: { endpoint, tests: TESTS } as never,
        parseAs: 'stream',
        signal: running.signal,
      })
      if (!response.ok) {
        const { error: message, code } = (error ?? {}) as { error?: string; code?: string }
        throw new ApiError(response.status, code ?? 'unknown', message ?? `The gateway answered with status ${response.status}.`)
      }
      if (!response.body) return
      const found: Result[] = []
      for await (const result of linesOf<Result>(response.body)) {
        found.push(result)
        setResults([...found])
      }
      setTested(found.some(({ test: name, outcome }) => name === 'text' && outcome === 'ok'))
    } catch (failure) {
      setProblem(running.signal.aborted ? new Error('The test was cancelled.') : failure)
    } finally {
      setTesting(undefined)
    }
  }
  const save = async () => {
    setProblem(undefined)
    try {
      const changes: Change[] = Object.entries({ base_url: null, api_key: null, model: null, ...endpoint }).map(([name, value]) => ({
        key: `provider.${name}`,
        value,
      }))
      const { version: current } = await previewOf(changes)
      await answered(api.PUT('/api/config', { body: { changes, version: current || version } }))
      await refresh('/api/config', '/api/overview')
      go('/chat')
    } catch (failure) {
      setProblem(failure)
    }
  }
  return (
    <div class="grid">
      <Card title="1. Provider" padded>
        <form
          class="stack"
          onSubmit={(event) => {
            event.preventDefault()
            void test()
          }}
        >
          <Field label="Service">
            {(props) => (
              <select {...props} value={kind} onChange={({ currentTarget }) => changed(setKind)(currentTarget.value)}>
                {providers.map((provider) => (
                  <option key={provider.kind} value={provider.kind}>
                    {provider.kind}
                  </option>
                ))}
                <option value="custom">Another endpoint that is compatible with OpenAI</option>
              </select>
            )}
          </Field>
          {(needsAddress || !needsKey) && (
            <Field
              label="Address"
              hint={needsAddress ? 'Such as https://models.example.com/v1' : `Empty: ${chosen.base_url}`}
              problem={problemOf(address)}
            >
              {(props) => (
                <input
                  {...props}
                  type="url"
                  required={needsAddress}
                  value={address}
                  onInput={({ currentTarget }) => changed(setAddress)(currentTarget.value)}
                />
              )}
            </Field>
          )}
          <Field label="Key" hint={needsKey ? 'From the account of the service.' : 'Empty if the endpoint wants none.'}>
            {(props) => (
              <input
                {...props}
                type="password"
                autocomplete="off"
                required={needsKey}
                value={key}
                onInput={({ currentTarget }) => changed(setKey)(currentTarget.value)}
              />
            )}
          </Field>
          <Field
            label="Model"
            hint={offered ? `The endpoint offers ${offered.length}: choose one, or type a name.` : 'The name that the service gives it.'}
          >
            {(props) => (
              <>
                <input
                  {...props}
                  required
                  list="offered-models"
                  value={model}
                  onInput={({ currentTarget }) => {
                    setModel(currentTarget.value)
                    setTested(false)
                    setResults([])
                  }}
                />
                <datalist id="offered-models">
                  {offered?.map(({ id, context_tokens }) => (
                    <option key={id} value={id}>
                      {context_tokens === null ? id : `${id} (${short(context_tokens)} tokens)`}
                    </option>
                  ))}
                </datalist>
              </>
            )}
          </Field>
          <div class="row">
            <Act work={list}>List its models</Act>
            <Act work={test} class={isTested ? '' : 'primary'} disabled={model === '' || problemOf(address) !== undefined}>
              Test it
            </Act>
            <span class="quiet">The test sends real requests, which the service may charge.</span>
          </div>
        </form>
      </Card>
      <Card title="2. Test" padded>
        <div class="stack" aria-live="polite">
          {testing && <Testing done={results.filter(({ type }) => type === 'result').length} cancel={() => testing.abort()} />}
          {results.length === 0 && problem === undefined && !testing && <p class="empty">The results appear here.</p>}
          {results.map((result, index) =>
            result.type === 'result' ? (
              <div key={index} class="row">
                <Badge state={result.outcome ?? ''} /> <span>{result.test?.replaceAll('_', ' ')}</span>
                <span class="quiet">
                  {duration(result.took_ms ?? 0)}
                  {(result.cost_usd ?? 0) > 0 && `, ${usd(result.cost_usd ?? 0)}`}
                </span>
                {result.detail && <Name value={result.detail} />}
              </div>
            ) : result.type === 'error' ? (
              <Note key={index} tone="bad">
                <Text value={result.message ?? ''} />
              </Note>
            ) : null,
          )}
          {problem !== undefined && <Problem error={problem} />}
          {isTested && (
            <Note tone={lacking.length === 0 ? 'ok' : 'warn'}>
              <div class="row spread">
                <span>
                  {lacking.length === 0
                    ? 'The model answers, streams and calls tools.'
                    : `The model answers, but did not pass: ${lacking.join(', ')}. An agent without it can do less.`}
                </span>
                <Act class={lacking.length === 0 ? 'primary' : ''} work={save}>
                  Save and send the first message
                </Act>
              </div>
            </Note>
          )}
        </div>
      </Card>
    </div>
  )
}

/** The configuration: its sections, as a form. Changes are checked by the gateway and shown before they are saved; secrets are never shown. */
import { useMemo, useState } from 'preact/hooks'
import { answered, api, type Got } from '../data/api.ts'
import { refresh, useApi, useOverview } from '../data/queries.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import { fieldText, fieldValue, type Schema, type Section, type Setting, sectionsOf } from '../data/settings.ts'
import { Act, Field } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Card, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Name, Text } from '../ui/text.tsx'
import { say } from '../ui/toast.tsx'

type Config = Got<'/api/config'>
type Known = Config['keys'][number]
export interface Preview {
  readonly version: string
  readonly changes: readonly { readonly key: string; readonly before?: unknown; readonly after?: unknown; readonly secret: boolean }[]
  readonly warnings: readonly string[]
}
export interface Change {
  readonly key: string
  readonly value: unknown
}

export function Configuration() {
  const config = useApi('/api/config', {})
  const schema = useApi('/api/config/schema', {})
  const refused = useOverview().data?.status.problems.find(({ about }) => about === 'config')
  return (
    <Page title="Configuration" about={config.data && <code>{config.data.file}</code>}>
      {refused && (
        <Note tone="bad">
          <Text value={refused.text} />
        </Note>
      )}
      <Loaded query={config}>
        {(data) => <Loaded query={schema}>{(shape) => <Sections config={data} schema={shape as Schema} />}</Loaded>}
      </Loaded>
    </Page>
  )
}

function Sections({ config, schema }: { readonly config: Config; readonly schema: Schema }) {
  const query = placeQuery()
  const word = query.get('find') ?? ''
  const sections = useMemo(() => {
    const names = (path: string) => [
      ...new Set(config.keys.flatMap(({ key }) => (key.startsWith(`${path}.`) ? [key.slice(path.length + 1).split('.')[0] ?? ''] : []))),
    ]
    return sectionsOf(schema, names)
  }, [config, schema])
  const known = useMemo(() => new Map(config.keys.map((one) => [one.key, one])), [config])
  const isSet = ({ settings }: Section) => settings.some(({ key }) => (known.get(key)?.source ?? 'default') !== 'default')
  const shown = sections.filter(({ path, settings }) =>
    `${path} ${settings.map(({ name }) => name).join(' ')}`.includes(word.toLowerCase()),
  )
  const asked = query.get('section')
  const current = sections.find(({ path }) => path === asked) ?? shown[0]
  return (
    <>
      {config.warnings.map((warning) => (
        <Note key={warning} tone="warn">
          <Text value={warning} />
        </Note>
      ))}
      {!config.editable && <Note tone="info">The program that embeds the gateway holds the configuration: it cannot be changed here.</Note>}
      <div class="with-list">
        <Card title="Sections">
          <div class="body stack">
            <input
              type="search"
              aria-label="Find a section or a key"
              placeholder="Find"
              value={word}
              onInput={({ currentTarget }) => setPlaceQuery({ section: asked ?? undefined, find: currentTarget.value })}
            />
            <ul class="names">
              {shown.map((section) => (
                <li key={section.path}>
                  <a
                    href={`#/configuration?${new URLSearchParams({ section: section.path, ...(word && { find: word }) })}`}
                    aria-current={section.path === current?.path ? 'true' : undefined}
                  >
                    {section.path} {isSet(section) && <span class="dot" title="is configured" />}
                  </a>
                </li>
              ))}
            </ul>
          </div>
        </Card>
        {current && <SectionForm key={current.path} section={current} known={known} config={config} />}
      </div>
    </>
  )
}

interface FormProps {
  readonly section: Section
  readonly known: ReadonlyMap<string, Known>
  readonly config: Config
}

function SectionForm({ section: { path, settings }, known, config }: FormProps) {
  const [texts, setTexts] = useState<Readonly<Record<string, string>>>({})
  const [review, setReview] = useState<{ readonly changes: readonly Change[]; readonly preview: Preview } | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const changed = Object.keys(texts)
  const look = async () => {
    setProblem(undefined)
    try {
      const changes = settings
        .filter(({ key }) => texts[key] !== undefined)
        .map(({ key, schema }) => ({ key, value: fieldValue(schema, texts[key] ?? '') }))
      setReview({ changes, preview: await previewOf(changes) })
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <Card title={<code>[{path}]</code>} padded>
      <form
        class="stack wide"
        onSubmit={(event) => {
          event.preventDefault()
          void look()
        }}
      >
        {settings.map((setting) => (
          <SettingField
            key={setting.key}
            setting={setting}
            known={known.get(setting.key)}
            text={texts[setting.key]}
            isFixed={!config.editable}
            onText={(text) => {
              const { [setting.key]: _, ...rest } = texts
              setTexts(text === undefined ? rest : { ...rest, [setting.key]: text })
            }}
          />
        ))}
        {problem !== undefined && <Problem error={problem} />}
        <div class="row">
          <button type="submit" class="primary" disabled={changed.length === 0}>
            Review {changed.length === 1 ? 'one change' : `${changed.length} changes`}
          </button>
          <button type="button" disabled={changed.length === 0} onClick={() => setTexts({})}>
            Discard
          </button>
        </div>
      </form>
      {review && (
        <Review
          {...review}
          onClose={() => setReview(undefined)}
          onSaved={() => {
            setReview(undefined)
            setTexts({})
          }}
        />
      )}
    </Card>
  )
}

export const previewOf = (changes: readonly Change[]): Promise<Preview> =>
  answered(api.POST('/api/config/preview', { body: { changes: [...changes] } }))

interface SettingProps {
  readonly setting: Setting
  readonly known: Known | undefined
  /** What a person has typed; undefined while the key is as it was. */
  readonly text: string | undefined
  readonly isFixed: boolean
  readonly onText: (text: string | undefined) => void
}

export function SettingField({ setting: { key, name, schema }, known, text, isFixed, onText }: SettingProps) {
  const isHidden = schema.writeOnly === true
  const before = isHidden ? '' : fieldText(schema, known?.source === 'default' ? undefined : known?.value)
  const value = text ?? before
  const isFromEnvironment = known?.source === 'environment'
  const standard = fieldText(schema, known?.source === 'default' ? known.value : schema.default)
  const placeholder = isHidden
    ? known && known.source !== 'default'
      ? 'is set; type to replace it'
      : 'not set'
    : standard.split('\n').join(', ')
  const change = (next: string) => onText(!isHidden && next === before ? undefined : next)
  const hint = (
    <>
      {schema.description}
      {isFromEnvironment && (
        <>
          {' '}
          <strong>
            The environment variable <code>{known.variable}</code> decides it.
          </strong>
        </>
      )}
    </>
  )
  return (
    <div class={text === undefined ? '' : 'is-changed'}>
      <Field label={name} hint={hint}>
        {(props) => {
          const common = { ...props, disabled: isFixed || isFromEnvironment }
          if (schema.enum || schema.type === 'boolean')
            return (
              <select {...common} value={value} onChange={({ currentTarget }) => change(currentTarget.value)}>
                <option value="">default{standard && `: ${standard}`}</option>
                {(schema.enum ?? [true, false]).map((option) => (
                  <option key={String(option)} value={String(option)}>
                    {String(option)}
                  </option>
                ))}
              </select>
            )
          if (isHidden)
            return (
              <input
                {...common}
                type="password"
                autocomplete="off"
                value={value}
                placeholder={placeholder}
                onInput={({ currentTarget }) => change(currentTarget.value)}
              />
            )
          if (schema.type === 'number' || schema.type === 'integer')
            return (
              <input
                {...common}
                type="number"
                step="any"
                value={value}
                placeholder={placeholder}
                onInput={({ currentTarget }) => change(currentTarget.value)}
              />
            )
          if (schema.type === 'string')
            return (
              <input
                {...common}
                dir="auto"
                value={value}
                placeholder={placeholder}
                onInput={({ currentTarget }) => change(currentTarget.value)}
              />
            )
          return (
            <textarea
              {...common}
              class="mono"
              dir="auto"
              rows={Math.min(10, Math.max(2, value.split('\n').length))}
              value={value}
              placeholder={placeholder || (schema.items?.type === 'string' ? 'one on each line' : 'JSON')}
              onInput={({ currentTarget }) => change(currentTarget.value)}
            />
          )
        }}
      </Field>
      {isHidden && known && known.source === 'file' && text === undefined && !isFixed && (
        <button type="button" class="small plain danger" onClick={() => onText('')}>
          Remove {key}
        </button>
      )}
    </div>
  )
}

const shownValue = (value: unknown, secret: boolean): string => {
  if (value === undefined || value === null) return 'none'
  return secret ? 'a secret' : typeof value === 'string' ? value : JSON.stringify(value)
}

interface ReviewProps {
  readonly changes: readonly Change[]
  readonly preview: Preview
  readonly onClose: () => void
  readonly onSaved: () => void
}

/**
 * Shows changes before they are saved. Saving is refused if the file was changed after the preview: a person saves what was shown,
 * also while the page has not yet read the file again after its own last change.
 */
export function Review({ changes, preview, onClose, onSaved }: ReviewProps) {
  const [problem, setProblem] = useState<unknown>()
  const save = async () => {
    setProblem(undefined)
    try {
      await answered(api.PUT('/api/config', { body: { changes: [...changes], version: preview.version } }))
      say('Saved. The gateway takes it over within a second.')
      onSaved()
      await refresh('/api/config', '/api/overview', '/api/features', '/api/channels')
    } catch (error) {
      setProblem(error)
    }
  }
  return (
    <Dialog title="What will change" onClose={onClose}>
      <Table
        label="What will change"
        rows={preview.changes}
        keyOf={({ key }) => key}
        empty="Nothing."
        columns={[
          { name: 'Key', heads: true, show: ({ key }) => <code>{key}</code> },
          {
            name: 'Before',
            show: ({ before, secret }) => (
              <del>
                <Name value={shownValue(before, secret)} />
              </del>
            ),
          },
          {
            name: 'After',
            show: ({ after, secret }) => (
              <ins>
                <Name value={shownValue(after, secret)} />
              </ins>
            ),
          },
        ]}
      />
      {preview.warnings.map((warning) => (
        <Note key={warning} tone="warn">
          <Text value={warning} />
        </Note>
      ))}
      {problem !== undefined && <Problem error={problem} />}
      <div class="row end">
        <button type="button" onClick={onClose}>
          Back
        </button>
        <Act class="primary" work={save}>
          Save
        </Act>
      </div>
    </Dialog>
  )
}

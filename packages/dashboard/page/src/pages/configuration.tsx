/** The configuration: its settings by what a person wants to do, each section as a form. Changes are checked by the gateway and shown before they are saved; secrets are never shown. */
import type { ComponentChildren } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import { answered, api, type Got } from '../data/api.ts'
import { refresh, useApi, useOverview } from '../data/queries.ts'
import { placeQuery, setPlaceQuery } from '../data/router.ts'
import {
  differs,
  fieldText,
  fieldValue,
  finder,
  type Schema,
  type Section,
  type Setting,
  sectionAround,
  sectionsOf,
  settingsOf,
  wordsOf,
} from '../data/settings.ts'
import { Act, Field } from '../ui/controls.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Badge, Card, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { Table } from '../ui/table.tsx'
import { Name, Text } from '../ui/text.tsx'
import { say } from '../ui/toast.tsx'
import { Groups, OtherPlaces, SectionList, type View } from './configuration-groups.tsx'

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
    <Page title="Configuration" about={config.data && <Place config={config.data} />}>
      {refused && (
        <Note tone="bad">
          <Text value={refused.text} />
        </Note>
      )}
      <Loaded query={config}>
        {(data) => <Loaded query={schema}>{(shape) => <Settings config={data} schema={shape as Schema} />}</Loaded>}
      </Loaded>
    </Page>
  )
}

/** Where the configuration is. */
function Place({ config: { file, shared, editable, own } }: { readonly config: Config }) {
  if (!editable) return <>The program that embeds the gateway holds the configuration: it cannot be changed here.</>
  if (!shared)
    return (
      <>
        Each setting is a key of this daemon's own file, <code>{file}</code>. You can change it here, on the command line, or in an editor.
      </>
    )
  return (
    <>
      The database holds the configuration, and all nodes of the cluster share it. The file of this node, <code>{file}</code>, has only{' '}
      {own.map((path, index) => (
        <span key={path}>
          {index > 0 && ', '}
          <code>{path}</code>
        </span>
      ))}
      .
    </>
  )
}

function Settings({ config, schema }: { readonly config: Config; readonly schema: Schema }) {
  const place = placeQuery()
  const query = place.get('find')?.trim() ?? ''
  const asked = place.get('section') ?? undefined
  // What a person has typed stays while other sections are looked at.
  const [texts, setTexts] = useState<Texts>({})
  const sections = useMemo(() => {
    const names = (path: string) => [
      ...new Set(config.keys.flatMap(({ key }) => (key.startsWith(`${path}.`) ? [firstName(key.slice(path.length + 1))] : []))),
    ]
    return sectionsOf(schema, names)
  }, [config, schema])
  const known = useMemo(() => new Map(config.keys.map((one) => [one.key, one])), [config])
  const changed = useMemo(() => {
    // The gateway lists each value in a table of a setting, such as a header, by itself.
    const given = config.keys.filter(({ source }) => source !== 'default').map(({ key }) => key)
    const isChanged = (setting: Setting) =>
      differs(setting, known.get(setting.key)) ||
      (setting.schema.type === 'object' && given.some((key) => key.startsWith(`${setting.key}.`)))
    return new Set(
      sections
        .flatMap(settingsOf)
        .filter(isChanged)
        .map(({ key }) => key),
    )
  }, [config, sections, known])
  const view: View = {
    tasks: schema['x-tasks'] ?? [],
    sections,
    query,
    isFound: useMemo(() => finder(query, known), [query, known]),
    differs: ({ key }) => changed.has(key),
    isTyped: ({ key }) => texts[key] !== undefined,
  }
  const current = asked === undefined ? undefined : sectionAround(sections, asked)
  return (
    <>
      {config.warnings.map((warning) => (
        <Note key={warning} tone="warn">
          <Text value={warning} />
        </Note>
      ))}
      <div class="row">
        <input
          type="search"
          class="grow"
          aria-label="Find a setting"
          placeholder="Find a setting by its key, its words or its value"
          value={place.get('find') ?? ''}
          onInput={({ currentTarget }) => setPlaceQuery({ section: asked, find: currentTarget.value })}
        />
      </div>
      {asked !== undefined && !current && (
        <Note tone="warn">
          This build has no section <code>{asked}</code>.
        </Note>
      )}
      {current ? (
        <div class="with-list">
          <Card title={<a href={allAddress(query)}>All settings</a>}>
            <div class="body">
              <SectionList view={view} current={current} />
            </div>
          </Card>
          <SectionForm key={current.path} {...{ section: current, view, known, config, texts, setTexts }} asked={asked} />
        </div>
      ) : (
        <Groups {...view} />
      )}
    </>
  )
}

/** The first name of a path, without the quotes around one with other characters. */
const firstName = (path: string): string => {
  const quoted = /^"(?:[^"\\]|\\.)*"/.exec(path)?.[0]
  return quoted === undefined ? (path.split('.')[0] ?? '') : String(JSON.parse(quoted))
}

const allAddress = (query: string): string => `#/configuration${query && `?${new URLSearchParams({ find: query })}`}`

type Texts = Readonly<Record<string, string>>

interface FormProps {
  readonly section: Section
  /** The path of the section, or of a table in it. */
  readonly asked: string | undefined
  readonly view: View
  readonly known: ReadonlyMap<string, Known>
  readonly config: Config
  readonly texts: Texts
  readonly setTexts: (change: (texts: Texts) => Texts) => void
}

function SectionForm({ section, asked, view, known, config, texts, setTexts }: FormProps) {
  const [review, setReview] = useState<{ readonly changes: readonly Change[]; readonly preview: Preview } | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const title = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    // A link that was pressed in the list of all settings is gone: people go on where the section begins.
    if (document.activeElement === document.body) title.current?.focus({ preventScroll: true })
    if (asked === section.path) title.current?.scrollIntoView({ block: 'nearest' })
  }, [])
  const settings = settingsOf(section)
  const typed = settings.filter(view.isTyped)
  const look = async () => {
    setProblem(undefined)
    try {
      const changes = typed.map(({ key, schema }) => ({ key, value: fieldValue(schema, texts[key] ?? '') }))
      setReview({ changes, preview: await previewOf(changes) })
    } catch (error) {
      setProblem(error)
    }
  }
  const discard = () => setTexts((all) => Object.fromEntries(Object.entries(all).filter(([key]) => !typed.some((one) => one.key === key))))
  const parts = section.parts.map(({ path, settings: all }) => ({
    path,
    settings: all.filter((setting) => view.query === '' || view.isTyped(setting) || view.isFound(section, setting)),
    isNotable: path === asked || view.query !== '' || all.some(view.differs) || all.some(view.isTyped),
  }))
  const hidden = settings.length - parts.reduce((sum, part) => sum + part.settings.length, 0)
  return (
    <Card
      title={
        <span class="aim" tabIndex={-1} ref={title}>
          {section.title}
        </span>
      }
      actions={
        <>
          <code>[{section.path}]</code>
          <OtherPlaces task={section.task} path={section.path} />
        </>
      }
      padded
    >
      <form
        class="stack wide"
        onSubmit={(event) => {
          event.preventDefault()
          void look()
        }}
      >
        {config.shared && <KeptAt path={section.path} config={config} />}
        {parts
          .filter((part) => part.settings.length > 0)
          .map(({ path, settings, isNotable }) => {
            const fields = settings.map((setting) => (
              <SettingField
                key={setting.key}
                setting={setting}
                known={known.get(setting.key)}
                isChanged={view.differs(setting)}
                text={texts[setting.key]}
                isFixed={!config.editable}
                onText={(text) =>
                  setTexts((all) => {
                    const { [setting.key]: _, ...rest } = all
                    return text === undefined ? rest : { ...rest, [setting.key]: text }
                  })
                }
              />
            ))
            return path === section.path ? (
              fields
            ) : (
              <TablePart key={path} path={path} isAsked={path === asked} isOpen={isNotable}>
                {fields}
              </TablePart>
            )
          })}
        {hidden > 0 && (
          <p class="quiet">
            {hidden === 1 ? 'One setting' : `${hidden} settings`} of this section {hidden === 1 ? 'does' : 'do'} not match.{' '}
            <a href={`#/configuration?${new URLSearchParams({ section: section.path })}`}>Show all</a>
          </p>
        )}
        {section.unnamed.map((path) => (
          <p key={path} class="quiet">
            There is none yet. Write a table such as <code>[{path}.example]</code> into the file; its settings then stand here.
          </p>
        ))}
        {problem !== undefined && <Problem error={problem} />}
        <div class="row">
          <button type="submit" class="primary" disabled={typed.length === 0}>
            Review {typed.length === 1 ? 'one change' : `${typed.length} changes`}
          </button>
          <button type="button" disabled={typed.length === 0} onClick={discard}>
            Discard
          </button>
        </div>
      </form>
      {review && (
        <Review
          {...review}
          needsRestart={typed.some(({ schema }) => schema['x-restart'])}
          onClose={() => setReview(undefined)}
          onSaved={() => {
            setReview(undefined)
            discard()
          }}
        />
      )}
    </Card>
  )
}

interface PartProps {
  readonly path: string
  readonly isAsked: boolean
  readonly isOpen: boolean
  readonly children: ComponentChildren
}

/** A table in a section; it is closed while nothing in it was changed. */
function TablePart({ path, isAsked, isOpen, children }: PartProps) {
  const part = useRef<HTMLDetailsElement>(null)
  useEffect(() => {
    if (isAsked) part.current?.scrollIntoView()
  }, [isAsked])
  return (
    <details class="aim" ref={part} open={isOpen}>
      <summary>
        <code>[{path}]</code>
      </summary>
      <div class="stack wide inner">{children}</div>
    </details>
  )
}

/** In a cluster, who has the section. */
function KeptAt({ path, config: { own, file } }: { readonly path: string; readonly config: Config }) {
  const keys = own.filter((one) => path === one || one.startsWith(`${path}.`) || path.startsWith(`${one}.`))
  if (keys.length === 0) return <p class="quiet">All nodes of the cluster share these settings: the database has them.</p>
  return (
    <p class="quiet">
      {keys.includes(path) ? 'These settings are' : `${keys.join(' and ')} are`} this node's own: they stand in <code>{file}</code>.
    </p>
  )
}

export const previewOf = (changes: readonly Change[]): Promise<Preview> =>
  answered(api.POST('/api/config/preview', { body: { changes: [...changes] } }))

/** A longer default is found in the documentation. */
const DEFAULT_CHARS_MAX = 80

interface SettingProps {
  readonly setting: Setting
  readonly known: Known | undefined
  /** Whether the value in force differs from the default. */
  readonly isChanged?: boolean
  /** What a person has typed; undefined while the key is as it was. */
  readonly text: string | undefined
  readonly isFixed: boolean
  readonly onText: (text: string | undefined) => void
}

export function SettingField({ setting, known, isChanged = differs(setting, known), text, isFixed, onText }: SettingProps) {
  const { key, name, schema } = setting
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
  const fallback = isChanged && !isHidden ? fieldText(schema, schema.default) : ''
  const hint = (
    <>
      {isChanged && (
        <>
          <Badge state={isHidden ? 'set' : 'changed'} tone="info" />{' '}
        </>
      )}
      {schema['x-restart'] && (
        <>
          <Badge state="needs a restart" tone="warn" />{' '}
        </>
      )}
      {schema.description}
      {fallback && fallback.length <= DEFAULT_CHARS_MAX && (
        <>
          {' '}
          Default: <code>{fallback.split('\n').join(', ')}</code>
        </>
      )}
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
      <Field
        label={
          <>
            {wordsOf(name)} <code class="key">{key}</code>
          </>
        }
        hint={hint}
      >
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
  /** Whether a change takes effect at the next start. */
  readonly needsRestart?: boolean
  readonly onClose: () => void
  readonly onSaved: () => void
}

/**
 * Shows changes before they are saved. Saving is refused if the file was changed after the preview: a person saves what was shown,
 * also while the page has not yet read the file again after its own last change.
 */
export function Review({ changes, preview, needsRestart = false, onClose, onSaved }: ReviewProps) {
  const [problem, setProblem] = useState<unknown>()
  const save = async () => {
    setProblem(undefined)
    try {
      await answered(api.PUT('/api/config', { body: { changes: [...changes], version: preview.version } }))
      say(needsRestart ? 'Saved. It takes effect when the daemon starts again.' : 'Saved. The gateway takes it over within a second.')
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
      {needsRestart && (
        <Note tone="warn">
          Keys that need a restart take effect when the daemon starts again: <code>sluice restart</code>.
        </Note>
      )}
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

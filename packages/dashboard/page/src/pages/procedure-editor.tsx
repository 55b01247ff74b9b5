/** The editor of a procedure: a new one from a template, or the files of one, checked while they are typed and simulated before they are saved. */

import { TEMPLATES } from 'virtual:sop-templates'
import { useEffect, useState } from 'preact/hooks'
import { ApiError, answered, api, type Got } from '../data/api.ts'
import { refresh, useApi } from '../data/queries.ts'
import { go, useParams } from '../data/router.ts'
import { Act, Choose, Field } from '../ui/controls.tsx'
import { Card, Loaded, Note, Page, Problem } from '../ui/parts.tsx'
import { say } from '../ui/toast.tsx'
import { changed, ProblemLine, Simulate } from './procedures.tsx'

const CHECK_AFTER_MS = 300
const FILES = '/api/sop-files/{folder}'
const CHECK = '/api/sop-files/{folder}/check'

type Files = Pick<Got<typeof FILES>, 'toml' | 'md' | 'version'>
interface Checked {
  readonly ok: boolean
  readonly name: string | null
  readonly problems: readonly Parameters<typeof ProblemLine>[0][]
}

export function ProcedureEditor() {
  const { folder } = useParams<{ folder: string }>()
  return folder === undefined ? (
    <Page title="New procedure" about={<a href="#/procedures">All procedures</a>}>
      <NewProcedure />
    </Page>
  ) : (
    <Page title={`Edit ${folder}`} about={<a href="#/procedures">All procedures</a>}>
      <Existing key={folder} folder={folder} />
    </Page>
  )
}

function NewProcedure() {
  const where = useApi('/api/sops/problems', {})
  return (
    <Loaded query={where}>
      {({ folder, editable }) =>
        editable === null ? (
          <Note tone="warn">
            The agent can write <code>{folder}</code>, so no procedure is made or edited here. Set <code>[sop] sops_dir</code> to another
            folder.
          </Note>
        ) : (
          <FromTemplate />
        )
      }
    </Loaded>
  )
}

function FromTemplate() {
  const [chosen, setChosen] = useState(0)
  const template = TEMPLATES[chosen]
  if (!template) return null
  return (
    <>
      <Card title="Template" padded>
        <div class="filters">
          <Choose
            label="Begin with"
            value={String(chosen)}
            options={TEMPLATES.map(({ name }, index) => [String(index), name.replaceAll('-', ' ')])}
            onChange={(value) => setChosen(Number(value))}
          />
        </div>
      </Card>
      <Editor key={chosen} name={template.name} files={{ ...template, version: null }} />
    </>
  )
}

function Existing({ folder }: { readonly folder: string }) {
  const files = useApi(FILES, { path: { folder } })
  return (
    <Loaded query={files}>
      {(data) =>
        data.version === null ? (
          <Note tone="warn">
            The folder of procedures has no <code>{folder}</code>. A procedure of the workspace is moved there first:{' '}
            <code>sluice sop adopt</code>.
          </Note>
        ) : (
          <>
            {data.unreadable.map((problem) => (
              <Note key={problem} tone="warn">
                {problem}. It is shown empty, and saving replaces it.
              </Note>
            ))}
            {/* What is typed stays when the files change elsewhere: saving then says so. */}
            <Editor name={folder} files={data} isThere />
          </>
        )
      }
    </Loaded>
  )
}

interface EditorProps {
  readonly name: string
  readonly files: Files
  readonly isThere?: boolean
}

function Editor({ name, files, isThere = false }: EditorProps) {
  const [folder, setFolder] = useState(name)
  const [toml, setToml] = useState(files.toml)
  const [md, setMd] = useState(files.md)
  const [version, setVersion] = useState(files.version)
  const [checked, setChecked] = useState<Checked | undefined>()
  const [problem, setProblem] = useState<unknown>()
  const [isSimulating, setSimulating] = useState(false)
  const path = { folder }
  useEffect(() => {
    const stale = new AbortController()
    const timer = setTimeout(async () => {
      try {
        const found = await answered(api.POST(CHECK, { params: { path }, body: { toml, md }, signal: stale.signal }))
        setChecked(found as Checked)
      } catch (error) {
        if (!stale.signal.aborted) setProblem(error)
      }
    }, CHECK_AFTER_MS)
    return () => {
      clearTimeout(timer)
      stale.abort()
    }
  }, [folder, toml, md])
  const edit = (set: (text: string) => void) => (text: string) => {
    set(text)
    setChecked(undefined)
    setProblem(undefined)
  }
  const save = async () => {
    setProblem(undefined)
    try {
      const saved = await answered(api.PUT(FILES, { params: { path }, body: { toml, md, version } }))
      setVersion(saved.version)
      say('Saved and loaded.')
      await Promise.all([changed(), refresh('/api/sop-files')])
      if (checked?.name) go(`/procedures/${encodeURIComponent(checked.name)}`)
    } catch (error) {
      setProblem(error)
    }
  }
  const isConflict = problem instanceof ApiError && problem.status === 409
  const reload = async () => {
    const now = await answered(api.GET(FILES, { params: { path } }))
    edit(setToml)(now.toml)
    setMd(now.md)
    setVersion(now.version)
  }
  return (
    <>
      {!isThere && (
        <Card title="Folder" padded>
          <Field label="Name of the folder" hint="Letters, digits, - and _. The name of the procedure is in SOP.toml.">
            {(props) => <input {...props} value={folder} onInput={({ currentTarget }) => edit(setFolder)(currentTarget.value.trim())} />}
          </Field>
        </Card>
      )}
      <Card title="Files" padded>
        <div class="stack wide">
          <TextFile name="SOP.toml" about="When it starts, and with what limits." value={toml} onText={edit(setToml)} />
          <TextFile name="SOP.md" about="The steps, in order." value={md} onText={edit(setMd)} />
          <div aria-live="polite">
            {!checked && problem === undefined && <p class="quiet">Checking…</p>}
            {checked && checked.problems.length === 0 && <Note tone="ok">No problems were found.</Note>}
            {checked && checked.problems.length > 0 && (
              <ul class="stack">
                {checked.problems.map((found, index) => (
                  <li key={index}>
                    <ProblemLine {...found} />
                  </li>
                ))}
              </ul>
            )}
          </div>
          {problem !== undefined && <Problem error={problem} />}
          <div class="row">
            <button type="button" disabled={!checked?.ok} onClick={() => setSimulating(true)}>
              Simulate
            </button>
            <Act class="primary" work={save} disabled={!checked?.ok}>
              Save
            </Act>
            {isConflict && isThere && <Act work={reload}>Discard mine and open the files as they are now</Act>}
          </div>
        </div>
      </Card>
      {isSimulating && checked?.name && <Simulate name={checked.name} draft={{ folder, toml, md }} onClose={() => setSimulating(false)} />}
    </>
  )
}

interface TextFileProps {
  readonly name: string
  readonly about: string
  readonly value: string
  readonly onText: (text: string) => void
}

const TextFile = ({ name, about, value, onText }: TextFileProps) => (
  <Field label={name} hint={about}>
    {(props) => (
      <textarea
        {...props}
        class="mono"
        rows={Math.min(30, Math.max(8, value.split('\n').length + 1))}
        spellcheck={false}
        value={value}
        onInput={({ currentTarget }) => onText(currentTarget.value)}
      />
    )}
  </Field>
)

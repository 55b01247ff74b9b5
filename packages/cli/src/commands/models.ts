/** `sluice models`: the models that the configured endpoints offer, and which of them are in use. */
import type { ListedEndpoint, ListedModel, ModelsPage } from '@sluice/http/answers'
import { withApi } from '../api/open-api.ts'
import type { CliContext } from '../context.ts'
import { textOption } from '../option-values.ts'

/** Exits with 1 if an endpoint did not answer with its list. */
export const run = (context: CliContext): Promise<number> =>
  withApi(
    context,
    async (api) => {
      const { out, json } = context
      const match = textOption(context, 'match')?.toLowerCase() ?? ''
      const page = await api.get<ModelsPage>('/api/models', { provider: textOption(context, 'provider') })
      const matching = ({ models }: ListedEndpoint) => models?.filter(({ id }) => id.toLowerCase().includes(match)) ?? null
      if (json) out.json({ endpoints: page.endpoints.map((endpoint) => ({ ...endpoint, models: matching(endpoint) })) })
      else
        for (const [index, endpoint] of page.endpoints.entries()) {
          if (index > 0) out.print('')
          printEntries(context, endpoint)
          printModels(context, endpoint, matching(endpoint))
        }
      return page.endpoints.some(({ error }) => error !== null) ? 1 : 0
    },
    { features: true },
  )

const WINDOW_TEXTS: Readonly<Record<ListedEndpoint['entries'][number]['context_window']['source'], string>> = {
  setting: 'as context_window says',
  endpoint: 'as the endpoint lists',
  refusal: 'as a refused request has shown',
  family: 'by the name of the model',
  default: 'which is assumed; set context_window if it is another',
}

function printEntries({ out }: CliContext, { provider, base_url, entries, models }: ListedEndpoint): void {
  out.print(out.style('bold', `${provider}${base_url === null ? '' : ` at ${base_url}`}`))
  for (const { entry, model, limits, context_window } of entries) {
    const isListed = models === null || models.some(({ in_use }) => in_use.includes(entry))
    out.print(`  ${entry} uses ${model}${isListed ? '' : ', which the endpoint does not list'}`)
    if (provider !== 'offline')
      out.print(`    its window is ${context_window.tokens.toLocaleString('en-US')} tokens, ${WINDOW_TEXTS[context_window.source]}`)
    for (const limit of limits) out.print(`    it ${limit}`)
  }
}

function printModels({ out }: CliContext, { error, models }: ListedEndpoint, matching: readonly ListedModel[] | null): void {
  if (error !== null) out.print(`  ${out.style('red', 'no list')}: ${error}`)
  else if (matching === null) out.print('  This provider has no list of models.')
  else if (matching.length === 0) out.print(models?.length ? '  No model matches.' : '  The list is empty.')
  else
    out.table(
      ['', 'model', 'context', 'USD per million tokens'],
      matching.map((model) => [model.in_use.length > 0 ? '*' : '', model.id, windowText(model), priceText(model)]),
    )
}

export const windowText = ({ context_tokens: tokens }: Pick<ListedModel, 'context_tokens'>): string =>
  tokens === null ? '' : tokens.toLocaleString('en-US')

export const priceText = ({ price }: Pick<ListedModel, 'price'>): string => (price === null ? '' : `${price.input} in, ${price.output} out`)

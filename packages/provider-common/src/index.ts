/** The parts that the packages `provider-*` share: the endpoint with its key and errors, the list of its models, and filters of replies. */

export { filteringReplies, type ReplyFilter } from './filter-replies.ts'
export { type ListOptions, listModels } from './list-models.ts'
export { mapStream, type StreamMapping } from './map-stream.ts'
export { type ModelEndpoint, modelEndpoint } from './model-endpoint.ts'

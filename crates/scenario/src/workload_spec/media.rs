//! What prompts hold: text alone, or text, images, audio and video.

use crate::problem::Problem;
use crate::workload_spec::client::{ClientSpec, Reader};
use crate::workload_spec::group::Group;
use crate::workload_spec::length::LengthSpec;
use crate::workload_spec::notes::{Note, Notes};
use blis_workload::{Input, Media};
use serde::Deserialize;

/// `multimodal:` as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "the names are the file's")]
pub(super) struct MultimodalSpec {
    text_distribution: Group<LengthSpec>,
    image_distribution: Group<LengthSpec>,
    image_count_distribution: Group<LengthSpec>,
    audio_distribution: Group<LengthSpec>,
    audio_count_distribution: Group<LengthSpec>,
    video_distribution: Group<LengthSpec>,
    video_count_distribution: Group<LengthSpec>,
}

impl Reader<'_> {
    /// The new part of a prompt.
    pub(super) fn input(&self, spec: &ClientSpec, notes: &mut Notes<'_>) -> Result<Input, Problem> {
        const TEXT: &str = "input_distribution";
        let given = spec.input_distribution.given();
        let Some(parts) = spec.multimodal.given() else {
            let text = given.cloned().unwrap_or_default();
            return self.length(TEXT, &text).map(Input::from);
        };
        if let Some(text) = given {
            self.length(TEXT, text)?;
            notes.add(Note::InputBesideMedia, &self.at(TEXT));
        }
        let text = match parts.text_distribution.given() {
            Some(text) => Some(self.length("multimodal.text_distribution", text)?),
            None => None,
        };
        let kinds = [
            ("image", &parts.image_distribution, &parts.image_count_distribution),
            ("audio", &parts.audio_distribution, &parts.audio_count_distribution),
            ("video", &parts.video_distribution, &parts.video_count_distribution),
        ];
        let mut media = Vec::new();
        for (kind, tokens, count) in kinds {
            media.extend(self.media(kind, tokens.given(), count.given())?);
        }
        if text.is_none() && media.is_empty() {
            let message = "neither text nor media; give at least one distribution";
            return Err(self.problem("multimodal", message));
        }
        Ok(Input { text, media })
    }

    /// Things of one kind: how many, and how many tokens each.
    fn media(
        &self,
        kind: &'static str,
        tokens: Option<&LengthSpec>,
        count: Option<&LengthSpec>,
    ) -> Result<Option<Media>, Problem> {
        let size = format!("multimodal.{kind}_distribution");
        let number = format!("multimodal.{kind}_count_distribution");
        match (tokens, count) {
            (None, None) => Ok(None),
            (Some(tokens), Some(count)) => {
                let (count, tokens) = (self.count(&number, count)?, self.length(&size, tokens)?);
                Ok(Some(Media { kind, count, tokens }))
            }
            (Some(_), None) => {
                let message =
                    format!("it needs `{kind}_count_distribution`; add how many there are");
                Err(self.problem(&size, message))
            }
            (None, Some(_)) => {
                let message = format!("it needs `{kind}_distribution`; add the tokens of each");
                Err(self.problem(&number, message))
            }
        }
    }
}
